// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package scale

import (
	"errors"
	"os/exec"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"tidekeeper.dev/tidekeeper/test/framework"
)

// questions measures the plugin's commands that read all nodes and pods. Their lower bound is a
// typed list of all pods, which each of these commands needs.
func (r *run) questions(t *testing.T) {
	t.Helper()
	plugin, err := framework.Binary("TIDE_BIN", "kubectl-tide")
	if err != nil {
		t.Fatal(err)
	}
	questions := []struct {
		key, what string
		args      []string
		within    float64
	}{
		{"command-plan", "pools plan, as a command, of the deletion of the pool of all nodes", []string{"pools", "plan", "--delete", poolName}, 1.2},
		{"command-describe", "pools describe, as a command", []string{"pools", "describe", poolName}, 1.2},
		{"command-fit", "pools fit, as a command", []string{"pools", "fit", "--cpu=1"}, 0},
		{"command-loss", "pools loss, as a command, of each node", []string{"pools", "loss"}, 0},
	}
	var lists []time.Duration
	took := make([][]time.Duration, len(questions))
	for range r.rounds {
		lists = append(lists, r.listPods(t))
		for i, q := range questions {
			begin := time.Now()
			out, err := exec.CommandContext(t.Context(), plugin, append(q.args, "--kubeconfig="+r.Kubeconfig)...).CombinedOutput()
			// Exit code 2 is a valid result of these commands.
			if failed := (*exec.ExitError)(nil); err != nil && (!errors.As(err, &failed) || failed.ExitCode() != 2) {
				t.Fatalf("%v: %v\n%s", q.args, err, out)
			}
			took[i] = append(took[i], time.Since(begin))
		}
	}
	for i, q := range questions {
		r.report.add(figure{
			Key: q.key, What: q.what, Value: median(took[i]), Unit: "s",
			Limit: median(lists), LimitIs: "a typed list of the pods alone", Within: q.within, Pairs: pairsOf(took[i], lists),
		})
	}
}

// listPods returns the duration of a typed list of all pods, encoded as Protobuf.
func (r *run) listPods(t *testing.T) time.Duration {
	t.Helper()
	config := rest.CopyConfig(r.Config)
	config.ContentType = "application/vnd.kubernetes.protobuf"
	config.QPS = -1
	clientset, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	pods, err := clientset.CoreV1().Pods("").List(t.Context(), metav1.ListOptions{ResourceVersion: "0"})
	if err != nil {
		t.Fatal(err)
	}
	took := time.Since(begin)
	if len(pods.Items) < r.pods {
		t.Fatalf("the list has %d pods", len(pods.Items))
	}
	return took
}
