// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// StartReal starts a sandbox with a real node, without simulated nodes and without Tidekeeper. If
// this machine cannot run a real node, the test is skipped, and the skip message states the reason.
func StartReal(t testing.TB, args ...string) *Cluster {
	t.Helper()
	cluster, err := start(func(*Cluster) error { return nil }, append([]string{"--nodes=0", "--real-nodes=1"}, args...)...)
	if err != nil && strings.Contains(err.Error(), "real nodes need") {
		t.Skipf("SKIPPED: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(cluster.RealNodeLog())
		}
		if err := cluster.stop(); err != nil {
			t.Error(err)
		}
	})
	return cluster
}

// RealNodeLog returns the last 4000 bytes of each log file of the real node.
func (c *Cluster) RealNodeLog() string {
	var b strings.Builder
	for _, name := range []string{"real-1", "real-1-containerd", "real-1-kubelet"} {
		data, _ := os.ReadFile(filepath.Join(c.Dir, "logs", name+".log"))
		fmt.Fprintf(&b, "%s:\n%s\n", name, data[max(0, len(data)-4000):])
	}
	return b.String()
}
