// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package rotate

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"tidekeeper.dev/tidekeeper/test/framework"
)

// way is a way of rotating all nodes.
type way struct {
	key, title string
	// rotate empties each node of the world and opens it again. What stands for the maintenance of
	// an empty node takes no time.
	rotate func(*testing.T, *world, *film)
	// harmless is true if no workload may be down, no budget violated, and no node stuck.
	harmless bool
}

// ways lists all ways, in the order of the table.
var ways = []way{
	{key: "drain", title: "`kubectl drain`, node by node", rotate: drain()},
	{key: "disable-eviction", title: "`kubectl drain --disable-eviction`", rotate: drain("--disable-eviction", framework.LongTimeout)},
	{key: "taint", title: "a taint `NoExecute`", rotate: taint},
	{key: "maintenance", title: "a NodeMaintenance", rotate: maintain(startCalm), harmless: true},
	{key: "killed", title: "… whose leader is killed again and again", rotate: maintain(startKilled), harmless: true},
	{key: "lossy", title: "… whose watches lose events", rotate: maintain(startLossy), harmless: true},
}

// drain returns a loop of kubectl drain and kubectl uncordon over all nodes. A node that is not
// empty in time is uncordoned nevertheless, and the loop goes on with the next node. The given flags
// come last and so override the world's timeout, which is for drains that a budget may block for good.
func drain(flags ...string) func(*testing.T, *world, *film) {
	return func(t *testing.T, w *world, _ *film) {
		for _, node := range w.nodeNames {
			args := append([]string{"drain", node, "--ignore-daemonsets", "--delete-emptydir-data", fmt.Sprint("--timeout=", w.timeout)}, flags...)
			if out, err := w.Kubectl("", args...); err != nil && !strings.Contains(out, "There are pending nodes to be drained") {
				t.Fatal(err)
			}
			w.MustKubectl(t, "", "uncordon", node)
		}
	}
}

// taint adds a NoExecute taint to each node, and removes it when the node is empty.
func taint(t *testing.T, w *world, _ *film) {
	for _, node := range w.nodeNames {
		w.MustKubectl(t, "", "taint", "nodes", node, rotationTaint+":NoExecute")
		framework.Eventually(t, "the node "+node+" is empty", func() error {
			pods := &corev1.PodList{}
			if err := w.List(t.Context(), pods, client.InNamespace(metav1.NamespaceDefault), client.MatchingFields{"spec.nodeName": node}); err != nil {
				return err
			}
			if len(pods.Items) > 0 {
				return fmt.Errorf("there are %d pods", len(pods.Items))
			}
			return nil
		})
		w.MustKubectl(t, "", "taint", "nodes", node, rotationTaint+"-")
	}
}
