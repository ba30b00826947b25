// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// TestEnvtestOnTheSandbox checks that the envtest suite of the guestbook example passes if etcd,
// kube-apiserver and kubectl are links to the sandbox binary. The tests at the end of envtest.md
// are in the same package, but without the build tag; "make test" runs them directly.
func TestEnvtestOnTheSandbox(t *testing.T) {
	t.Parallel()
	takeTurn(t)
	assets := t.TempDir()
	for _, program := range []string{"etcd", "kube-apiserver", "kubectl"} {
		if err := os.Symlink(binary, filepath.Join(assets, program)); err != nil {
			t.Fatal(err)
		}
	}
	test := exec.CommandContext(t.Context(), "go", "test", "-C", "../examples/guestbook", "-tags=envtest", "-count=1", "./internal/controller")
	// By default, envtest gives each program only 20 seconds to start, and as many to stop.
	test.Env = append(os.Environ(), "KUBEBUILDER_ASSETS="+assets, "KUBEBUILDER_CONTROLPLANE_START_TIMEOUT=2m", "KUBEBUILDER_CONTROLPLANE_STOP_TIMEOUT=2m")
	if out, err := test.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
