// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// metricsServerPatch makes the metrics-server Deployment serve on a free port of this machine, and
// accept kubelet certificates from any signer.
const metricsServerPatch = `[
	{"op": "replace", "path": "/spec/template/spec/containers/0/ports/0/containerPort", "value": %[1]s},
	{"op": "replace", "path": "/spec/template/spec/containers/0/args", "value": [
		"--cert-dir=%[2]s", "--bind-address=127.0.0.1", "--secure-port=%[1]s",
		"--kubelet-preferred-address-types=InternalIP", "--kubelet-insecure-tls", "--metric-resolution=15s"
	]}
]`

// InstallMetricsServer applies the manifests in the metrics-server module.
// [Cluster.RunMetricsServer] starts the program itself.
func (c *Cluster) InstallMetricsServer(t testing.TB) {
	t.Helper()
	_, port, err := net.SplitHostPort(FreeAddress(t))
	if err != nil {
		t.Fatal(err)
	}
	manifests := filepath.Join(ModuleDir(t, "hack/metrics-server", "sigs.k8s.io/metrics-server"), "manifests", "base")
	c.MustKubectl(t, "", "apply", "-k", manifests)
	c.MustKubectl(t, "", "-n", "kube-system", "patch", "deployment", "metrics-server", "--type=json", "-p", fmt.Sprintf(metricsServerPatch, port, t.TempDir()))
}

// RunMetricsServer starts the metrics-server program in place of its Deployment's pod.
func (c *Cluster) RunMetricsServer(t testing.TB) {
	t.Helper()
	c.RunAsPod(t, "METRICS_SERVER_BIN", "metrics-server", "--kubelets", "--from=deployment/kube-system/metrics-server")
}

// EventuallyTop waits until the predicate `wanted` accepts a line of kubectl top's output. Runs of
// spaces in the line are reduced to a single space.
func (c *Cluster) EventuallyTop(t testing.TB, what string, wanted func(line string) bool, args ...string) {
	t.Helper()
	// metrics-server scrapes each kubelet every 15 seconds, and needs two scrapes.
	EventuallyWithin(t, 3*Patience, "kubectl top shows "+what, func() error {
		out, err := c.Kubectl("", slices.Concat([]string{"top"}, args, []string{"--no-headers"})...)
		if err != nil {
			return err
		}
		for line := range strings.Lines(out) {
			if wanted(strings.Join(strings.Fields(line), " ")) {
				return nil
			}
		}
		return fmt.Errorf("it shows %q", out)
	})
}
