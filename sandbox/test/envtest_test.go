// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// The suite on envtest of the example passes with the programs that the sandbox is. The tests
// that the page ends with are of the same package, and make test runs them as they are.
func TestEnvtestOnTheSandbox(t *testing.T) {
	t.Parallel()
	assets := t.TempDir()
	for _, program := range []string{"etcd", "kube-apiserver", "kubectl"} {
		if err := os.Symlink(binary, filepath.Join(assets, program)); err != nil {
			t.Fatal(err)
		}
	}
	test := exec.CommandContext(t.Context(), "go", "test", "-C", "../examples/guestbook", "-tags=envtest", "-count=1", "./internal/controller")
	test.Env = append(os.Environ(), "KUBEBUILDER_ASSETS="+assets)
	if out, err := test.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
