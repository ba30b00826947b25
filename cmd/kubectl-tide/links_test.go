// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os/exec"
	"strings"
	"testing"
)

// TestPluginLinksNoManager checks that the plugin does not link packages that only a manager needs.
// The exception is client-go's leaderelection package, because controller-runtime's client
// registers its metrics.
func TestPluginLinksNoManager(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	linked := map[string]bool{}
	for _, path := range strings.Fields(string(out)) {
		linked[path] = true
	}
	for _, path := range []string{"tidekeeper.dev/tidekeeper/internal/cli", "sigs.k8s.io/controller-runtime/pkg/client"} {
		if !linked[path] {
			t.Errorf("does not link %s: is this the right program?", path)
		}
	}
	const runtime = "sigs.k8s.io/controller-runtime"
	for _, path := range []string{
		runtime, runtime + "/pkg/manager", runtime + "/pkg/builder", runtime + "/pkg/controller", runtime + "/pkg/cache",
		runtime + "/pkg/webhook", runtime + "/pkg/leaderelection", runtime + "/pkg/certwatcher", runtime + "/pkg/metrics/server",
		"tidekeeper.dev/tidekeeper/internal/manager", "tidekeeper.dev/tidekeeper/internal/controller",
	} {
		if linked[path] {
			t.Errorf("links %s", path)
		}
	}
}
