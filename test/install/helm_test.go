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

// TestChartNeedsKubernetes checks that the chart can be installed on the oldest Kubernetes release
// that supports the CRDs' validation rules, but not on older releases.
func TestChartNeedsKubernetes(t *testing.T) {
	for release, installs := range map[string]bool{
		"v1.30.14": false, "v1.31.14": false, "v1.32.0": true, "v1.32.0-eks-1a2b3c": true, "v1.37.1": true,
	} {
		out, err := framework.Helm(t, "template", "tidekeeper", framework.Chart(), "--kube-version", release)
		switch {
		case installs && err != nil:
			t.Errorf("Kubernetes %s: %v\n%s", release, err, out)
		case !installs && err == nil:
			t.Errorf("the chart can be installed on Kubernetes %s", release)
		case !installs && !strings.Contains(out, "kubeVersion: >=1.32.0-0"):
			t.Errorf("Kubernetes %s: the refusal does not say which release it needs:\n%s", release, out)
		}
	}
}
