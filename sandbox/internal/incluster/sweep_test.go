// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package incluster

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// TestSweep checks that only processes whose KUBECONFIG is in the directory are killed.
func TestSweep(t *testing.T) {
	start := func(kubeconfig string) <-chan error {
		t.Helper()
		cmd := exec.Command("sleep", "1000")
		cmd.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() { ended <- cmd.Wait() }()
		t.Cleanup(func() { _ = cmd.Process.Kill() })
		return ended
	}
	dir := t.TempDir()
	left, users, others := start(filepath.Join(dir, "lane-1.kubeconfig")), start("/home/me/.kube/config"), start(dir+"-2/lane-1.kubeconfig")
	if err := sweep(dir); err != nil {
		t.Fatal(err)
	}
	if err := <-left; err == nil {
		t.Error("it has ended by itself")
	}
	select {
	case err := <-users:
		t.Errorf("the user's own has ended: %v", err)
	case err := <-others:
		t.Errorf("that of another directory has ended: %v", err)
	default:
	}
}
