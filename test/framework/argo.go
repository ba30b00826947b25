// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"encoding/json"
	"os/exec"
	"path/filepath"
	"testing"
)

// InstallArgo installs the CRDs of Argo Rollouts, and runs its controller until the test ends, both
// in the version that hack/argo-rollouts pins.
func (c *Cluster) InstallArgo(t testing.TB) {
	t.Helper()
	// On the server, as they are too large for the annotation of a client-side apply.
	if out, err := c.Kubectl("", "apply", "--server-side", "-k", argoCRDs(t)); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if out, err := c.Kubectl("", "wait", "--for=condition=Established", "crd", "--all"); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	// Its metrics and probes would be served on all addresses of the machine, and nothing here
	// needs them: with a port that does not exist it goes on without.
	const none = "-1"
	RunTool(t, "ARGO_BIN", "argo-rollouts", "--kubeconfig="+c.Kubeconfig, "--leader-elect=false", "--metricsPort="+none, "--healthzPort="+none)
}

// argoCRDs returns the folder of the CRDs, which are in the module of the controller.
func argoCRDs(t testing.TB) string {
	t.Helper()
	// This also downloads the module, if of an earlier build only the binary is left.
	download := exec.CommandContext(t.Context(), "go", "mod", "download", "-json", "github.com/argoproj/argo-rollouts")
	download.Dir = filepath.Join(Root(), "hack", "argo-rollouts")
	out, err := download.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var module struct{ Dir string }
	if err := json.Unmarshal(out, &module); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(module.Dir, "manifests", "crds")
}
