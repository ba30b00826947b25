// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"strings"
	"testing"

	"tidekeeper.dev/tidekeeper/test/framework"
)

const (
	release   = "tidekeeper"
	namespace = framework.ManagerNamespace
)

func mustHelm(t *testing.T, args ...string) string {
	t.Helper()
	out, err := framework.Helm(t, args...)
	if err != nil {
		t.Fatalf("helm %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

func mustBinary(t *testing.T, variable, name string) string {
	t.Helper()
	path, err := framework.Binary(variable, name)
	if err != nil {
		t.Fatal(err)
	}
	return path
}
