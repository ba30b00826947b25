// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package neighbors

import (
	"os"
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

// TestMetricsServer checks that kubectl top shows the pods' usage, which comes from the kubelets
// through metrics-server and the API server. A pod's annotations set its simulated usage; without
// annotations it is half of the pod's requests.
func TestMetricsServer(t *testing.T) {
	cluster.InstallMetricsServer(t)

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
	cluster.RunMetricsServer(t)

	usage := func(want string, args ...string) {
		t.Helper()
		cluster.EventuallyTop(t, want, func(line string) bool { return strings.HasSuffix(line, " "+want) }, args...)
	}
	usage("250m 300Mi", "pods", "-l", "app=told")
	usage("40m 32Mi", "pods", "-l", "app=requests")
	// The node itself uses 100m and 500Mi. Two metrics-server pods use half of 100m and 200Mi each:
	// the Deployment's pod, and the pod for the program that runs on this machine.
	usage("490m 3% 1032Mi 1%", "nodes")

	// A changed usage annotation takes effect immediately.
	cluster.MustKubectl(t, "", "annotate", "pods", "-l", "app=told", "--overwrite", "sandbox.tidekeeper.dev/cpu-usage=2")
	usage("2000m 300Mi", "pods", "-l", "app=told")
	cluster.MustKubectl(t, "", "annotate", "pods", "-l", "app=told", "--overwrite", "sandbox.tidekeeper.dev/cpu-usage=10m")
	usage("10m 300Mi", "pods", "-l", "app=told")
}
