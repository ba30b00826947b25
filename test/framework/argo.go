// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"path/filepath"
	"testing"
)

// InstallArgo installs the CRDs of Argo Rollouts, and runs its controller until the test ends, both
// in the version that hack/argo-rollouts pins.
func (c *Cluster) InstallArgo(t testing.TB) {
	t.Helper()
	// Server-side, as the CRDs are too large for the annotation of a client-side apply.
	if out, err := c.Kubectl("", "apply", "--server-side", "-k", filepath.Join(ModuleDir(t, "hack/argo-rollouts", "github.com/argoproj/argo-rollouts"), "manifests", "crds")); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if out, err := c.Kubectl("", "wait", LongTimeout, "--for=condition=Established", "crd", "--all"); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	// The controller would serve metrics and probes on all addresses of the machine, and no test
	// needs them: with a port that does not exist, it runs without them.
	const none = "-1"
	RunTool(t, "ARGO_BIN", "argo-rollouts", "--kubeconfig="+c.Kubeconfig, "--leader-elect=false", "--metricsPort="+none, "--healthzPort="+none)
}
