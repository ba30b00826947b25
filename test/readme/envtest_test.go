// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package readme

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"tidekeeper.dev/tidekeeper/test/framework"
)

// The tests that sandbox/docs/envtest.md begins with pass with the programs that the sandbox is. Those
// that it ends with are tests of their own, of the same package.
func TestEnvtestOnTheSandbox(t *testing.T) {
	sandbox, err := framework.Binary("SANDBOX_BIN", "sandbox")
	if err != nil {
		t.Fatal(err)
	}
	assets := t.TempDir()
	for _, program := range []string{"etcd", "kube-apiserver", "kubectl"} {
		if err := os.Symlink(sandbox, filepath.Join(assets, program)); err != nil {
			t.Fatal(err)
		}
	}
	test := exec.CommandContext(t.Context(), "go", "test", "-tags=envtest", "-count=1", "./guestbook/internal/controller")
	test.Env = append(os.Environ(), "KUBEBUILDER_ASSETS="+assets)
	if out, err := test.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
