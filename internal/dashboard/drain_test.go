// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/drain"
)

// TestNodePanelNamesBlockers checks that the node panel lists the pods that block a drain of the
// node.
func TestNodePanelNamesBlockers(t *testing.T) {
	hour := metav1.NewTime(noon.Add(-time.Hour))
	budget := drain.Blocker{
		Reason: drain.Budget, Namespace: "shop", Workload: "Deployment/web", Pods: []string{"a", "b"}, Count: 2, Object: "PodDisruptionBudget/web", Since: &hour,
		Message: "the PodDisruptionBudget web allows no disruption now", Advice: "find out why its other pods are not healthy",
	}
	for name, tc := range map[string]struct {
		answer Drain
		says   []string
		not    string
	}{
		"blocked":             {Drain{Pods: 2, Blockers: []drain.Blocker{budget}}, []string{"Deployment/", "Budget", "60m ago", "allows no disruption now", "find out why"}, "without harm"},
		"free":                {Drain{Pods: 3}, []string{"all leave: 3 pods", "without harm"}, "What to do"},
		"not allowed":         {Drain{Problem: "not allowed to list poddisruptionbudgets"}, []string{"Not known: not allowed to list poddisruptionbudgets."}, "without harm"},
		"without volumes":     {Drain{Pods: 1, NoVolumes: "not allowed to list persistentvolumes"}, []string{"all leave: 1 pod", "Volumes are not evaluated: not allowed"}, "What to do"},
		"more than are shown": {Drain{Blockers: slices.Repeat([]drain.Blocker{budget}, mostPodRows+2)}, []string{"and 2 more: <code>kubectl tide pools blockers --node n1</code>"}, "without harm"},
		"hostile messages":    {Drain{Blockers: []drain.Blocker{{Reason: drain.Refused, Message: "<script>x</script>"}}}, []string{"&lt;script&gt;"}, "<script>"},
	} {
		t.Run(name, func(t *testing.T) {
			s := poolSite(t, func(node string) Drain {
				if node != "n1" {
					t.Errorf("the blockers of %q are read", node)
				}
				return tc.answer
			})
			if e, _ := pageOf(t, s, "/pools/worker"); strings.Contains(e.HTML, "If it is drained") {
				t.Error("the page has a drain though no node is chosen")
			}
			e, _ := pageOf(t, s, "/pools/worker?node=n1")
			_, panel, _ := strings.Cut(e.HTML, "If it is drained")
			for _, text := range tc.says {
				if !strings.Contains(panel, text) {
					t.Errorf("the panel does not say %q:\n%s", text, panel)
				}
			}
			if strings.Contains(panel, tc.not) {
				t.Errorf("the panel says %q:\n%s", tc.not, panel)
			}
		})
	}
}

// poolSite returns the site of a cluster that contains the pool worker with the node n1.
func poolSite(t *testing.T, drained func(node string) Drain) *Site {
	t.Helper()
	s := poolSiteWith(t, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}})
	memberOf(s).models.lookups.cluster.Drain = func(_ context.Context, node *corev1.Node, _ []*corev1.Node, _ time.Time) Drain {
		return drained(node.Name)
	}
	return s
}

// poolSiteWith returns the site of a cluster that contains the pool worker with the given node, and
// serves the given additional kinds.
func poolSiteWith(t *testing.T, node *corev1.Node, more ...Kind) *Site {
	t.Helper()
	node.Labels = map[string]string{"pool": "worker"}
	pool := tidekeeperv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "worker"}, Spec: tidekeeperv1.NodePoolSpec{Selector: &tidekeeperv1.NodeSelector{MatchLabels: map[string]tidekeeperv1.LabelValue{"pool": "worker"}}}}
	var f fakeKind
	s := newTestSite(t, nil, append(more,
		f.kind(kindPools, &tidekeeperv1.NodePool{}, &tidekeeperv1.NodePoolList{Items: []tidekeeperv1.NodePool{pool}}, nil),
		f.kind(kindNodes, &corev1.Node{}, &corev1.NodeList{Items: []corev1.Node{*node}}, nil),
		f.kind(kindPods, &corev1.Pod{}, &corev1.PodList{}, nil),
	)...)
	memberOf(s).models.lookups.cluster.Drain = func(context.Context, *corev1.Node, []*corev1.Node, time.Time) Drain { return Drain{} }
	return s
}
