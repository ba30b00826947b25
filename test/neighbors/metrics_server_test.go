// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package neighbors

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"tidekeeper.dev/tidekeeper/test/framework"
)

var cluster framework.Cluster

func TestMain(m *testing.M) {
	framework.AllAtOnce()
	os.Exit(framework.Main(m, &cluster, "--nodes=1", "--audit"))
}

// metricsServerPatch has the Deployment serve on a port of this machine that is free, and not
// check who signed the certificates of the kubelets.
const metricsServerPatch = `[
	{"op": "replace", "path": "/spec/template/spec/containers/0/ports/0/containerPort", "value": %[1]s},
	{"op": "replace", "path": "/spec/template/spec/containers/0/args", "value": [
		"--cert-dir=%[2]s", "--bind-address=127.0.0.1", "--secure-port=%[1]s",
		"--kubelet-preferred-address-types=InternalIP", "--kubelet-insecure-tls", "--metric-resolution=15s"
	]}
]`

// What a pod uses is what its annotations say, or half of what it requests. metrics-server asks
// the kubelets, the API server asks it, and kubectl top shows it.
func TestMetricsServer(t *testing.T) {
	_, port, err := net.SplitHostPort(framework.FreeAddress(t))
	if err != nil {
		t.Fatal(err)
	}
	kubectl := func(args ...string) string {
		t.Helper()
		out, err := cluster.Kubectl("", args...)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	manifests := filepath.Join(framework.ModuleDir(t, "hack/metrics-server", "sigs.k8s.io/metrics-server"), "manifests", "base")
	kubectl("apply", "-k", manifests)
	kubectl("-n", "kube-system", "patch", "deployment", "metrics-server", "--type=json", "-p", fmt.Sprintf(metricsServerPatch, port, t.TempDir()))

	told := framework.Deployment("told", 1, framework.App)
	told.Spec.Template.Annotations = map[string]string{
		"sandbox.tidekeeper.dev/cpu-usage": "250m", "sandbox.tidekeeper.dev/memory-usage": "300Mi",
	}
	requests := framework.Deployment("requests", 1, framework.App)
	requests.Spec.Template.Spec.Containers[0].Resources.Requests = corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("80m"), corev1.ResourceMemory: resource.MustParse("64Mi"),
	}
	cluster.Apply(t, told)
	cluster.Apply(t, requests)
	cluster.RunAsPod(t, "METRICS_SERVER_BIN", "metrics-server", "--kubelets", "--from=deployment/kube-system/metrics-server")

	usage := func(want string, args ...string) {
		t.Helper()
		// It looks at each kubelet every 15 seconds, and needs two looks.
		framework.EventuallyWithin(t, 3*framework.Patience, "kubectl top shows "+want, func() error {
			out, err := cluster.Kubectl("", append([]string{"top"}, args...)...)
			if err != nil {
				return err
			}
			if fields := strings.Join(strings.Fields(out), " "); !strings.Contains(fields, want) {
				return fmt.Errorf("it shows %q", fields)
			}
			return nil
		})
	}
	usage("250m 300Mi", "pods", "--no-headers", "-l", "app=told")
	usage("40m 32Mi", "pods", "--no-headers", "-l", "app=requests")
	// The node itself uses 100m and 500Mi; of metrics-server, two Pods use half of 100m and 200Mi
	// each: the one that the Deployment made, and the one of this machine's program.
	usage("490m 3% 1032Mi 1%", "nodes", "--no-headers")

	// What an annotation says holds from then on.
	kubectl("annotate", "pods", "-l", "app=told", "--overwrite", "sandbox.tidekeeper.dev/cpu-usage=2")
	usage("2000m 300Mi", "pods", "--no-headers", "-l", "app=told")
	kubectl("annotate", "pods", "-l", "app=told", "--overwrite", "sandbox.tidekeeper.dev/cpu-usage=10m")
	usage("10m 300Mi", "pods", "--no-headers", "-l", "app=told")
}
