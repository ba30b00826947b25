// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"path/filepath"
	"testing"
)

// InstallArgo installs the CRDs of Argo Rollouts and runs its controller until the test ends. Both
// have the version that hack/argo-rollouts pins.
func (c *Cluster) InstallArgo(t testing.TB) {
	t.Helper()
	// The apply is server-side because the CRDs are too large for the annotation that a client-side
	// apply adds.
	if out, err := c.Kubectl("", "apply", "--server-side", "-k", filepath.Join(ModuleDir(t, "hack/argo-rollouts", "github.com/argoproj/argo-rollouts"), "manifests", "crds")); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if out, err := c.Kubectl("", "wait", LongTimeout, "--for=condition=Established", "crd", "--all"); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	// By default the controller serves metrics and probes on all of the machine's addresses, and no
	// test needs them. With an invalid port it runs without them.
	const none = "-1"
	RunTool(t, "ARGO_BIN", "argo-rollouts", "--kubeconfig="+c.Kubeconfig, "--leader-elect=false", "--metricsPort="+none, "--healthzPort="+none)
}
