// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package pools

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/capacity"
	"tidekeeper.dev/tidekeeper/internal/nodepool/test/objects"
	"tidekeeper.dev/tidekeeper/internal/term"
	"tidekeeper.dev/tidekeeper/internal/view"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func at(t time.Time) *metav1.Time { return &metav1.Time{Time: t} }

func lines(t *testing.T, tab *term.Table, s term.Screen) []string {
	t.Helper()
	var out strings.Builder
	if err := tab.WriteTo(&out, s); err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
}

func detailOf(t *testing.T, f view.PoolFacts) view.PoolDetail {
	t.Helper()
	d, err := view.PoolDetailOf(f, noon)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func list(pairs ...string) corev1.ResourceList {
	l := corev1.ResourceList{}
	for i := 0; i < len(pairs); i += 2 {
		l[corev1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
	}
	return l
}

func aPool(name, reason string, change func(*tidekeeperv1.NodePool)) tidekeeperv1.NodePool {
	p := tidekeeperv1.NodePool{
		ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: *at(noon.Add(-time.Hour))},
		Spec: tidekeeperv1.NodePoolSpec{
			Labels: map[string]tidekeeperv1.LabelValue{"example.com/pool": tidekeeperv1.LabelValue(name)},
			Taints: []tidekeeperv1.Taint{{Key: "example.com/pool", Value: "x", Effect: corev1.TaintEffectNoSchedule}},
		},
		Status: tidekeeperv1.NodePoolStatus{Conditions: []metav1.Condition{{Type: "Ready", Status: "True", Reason: reason, Message: "said so"}}},
	}
	if change != nil {
		change(&p)
	}
	return p
}

func TestPoolsTable(t *testing.T) {
	pools := []tidekeeperv1.NodePool{
		aPool("gpu", "Conflicted", func(p *tidekeeperv1.NodePool) {
			p.Status.Conditions[0].Status = "False"
			p.Status.Conditions = append(p.Status.Conditions, metav1.Condition{Type: "Conflicted", Status: "True"})
			p.Status.NodeCount, p.Status.ReadyNodes = 4, 3
			p.Status.Allocatable, p.Status.Requested = list("cpu", "16", "memory", "64Gi"), list("cpu", "15500m", "memory", "1Gi")
			p.Status.LargestFits = []tidekeeperv1.LargestFit{{Node: "gpu-2", Resources: list("cpu", "500m", "memory", "60Gi", "pods", "7")}}
			p.Status.RequestedPercent = map[corev1.ResourceName]int32{"cpu": 96, "memory": 1, "pods": 0, "nvidia.com/gpu": 50}
		}),
		aPool("none", "NoNodes", nil),
		{ObjectMeta: metav1.ObjectMeta{Name: "新しい", CreationTimestamp: *at(noon)}},
	}
	for _, tc := range []struct {
		name   string
		wide   bool
		screen term.Screen
		want   []string
	}{
		{"a pipe", false, term.Screen{}, []string{
			"NAME     STATUS       READY   CPU   MEMORY   PODS   CONFLICTS   AGE",
			"gpu      Conflicted   3/4     96%   1%       0%     yes         60m",
			"none     NoNodes      0/0     -     -        -      -           60m",
			"新しい   Unknown      0/0     -     -        -      -           0s",
		}},
		{"a terminal", false, term.Screen{Terminal: true, Width: 100}, []string{
			"NAME     STATUS       READY   CPU               MEMORY            PODS              CONFLICTS   AGE",
			"gpu      Conflicted   3/4     █████████▋  96%   ▏·········   1%   ··········   0%   yes         60m",
			"none     NoNodes      0/0     -                 -                 -                 -           60m",
			"新しい   Unknown      0/0     -                 -                 -                 -           0s",
		}},
		{"a narrow one", false, term.Screen{Terminal: true, Width: 70}, []string{
			"NAME     STATUS       READY   CPU   MEMORY   PODS   CONFLICTS   AGE",
			"gpu      Conflicted   3/4     96%   1%       0%     yes         60m",
			"none     NoNodes      0/0     -     -        -      -           60m",
			"新しい   Unknown      0/0     -     -        -      -           0s",
		}},
		{"wide", true, term.Screen{}, []string{
			"NAME     STATUS       READY   CPU   MEMORY   PODS   CONFLICTS   AGE   CPU-OF       MEMORY-OF     FITS NOW                         OTHER                MESSAGE",
			"gpu      Conflicted   3/4     96%   1%       0%     yes         60m   15.5 of 16   1Gi of 64Gi   0.5 CPU, 60Gi memory, on gpu-2   nvidia.com/gpu 50%   said so",
			"none     NoNodes      0/0     -     -        -      -           60m   -            -             -                                -                    said so",
			"新しい   Unknown      0/0     -     -        -      -           0s    -            -             -                                -                    no manager has looked at it yet",
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, lines(t, listTable(pools, tc.wide, noon), tc.screen)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestDescribePool(t *testing.T) {
	pool := aPool("worker", "Healthy", func(p *tidekeeperv1.NodePool) {
		p.Spec.Handler = "runc"
		p.Spec.Annotations = map[string]tidekeeperv1.AnnotationValue{"example.com/evil": "\x1b[2J"}
		p.Status.NodeCount, p.Status.ReadyNodes = 2, 1
		p.Status.Allocatable, p.Status.Requested = list("cpu", "16"), list("cpu", "4")
		p.Status.RequestedPercent = map[corev1.ResourceName]int32{"cpu": 25}
	})
	node := func(name string, ready corev1.ConditionStatus) corev1.Node {
		return corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Status:     corev1.NodeStatus{Allocatable: list("cpu", "8", "memory", "8Gi", "pods", "10"), Conditions: []corev1.NodeCondition{{Type: "Ready", Status: ready}}},
		}
	}
	right := node("node-1", "True")
	right.Labels = map[string]string{"example.com/pool": "worker"}
	right.Annotations = map[string]string{"example.com/evil": "\x1b[2J"}
	right.Spec.Taints = []corev1.Taint{{Key: "example.com/pool", Value: "x", Effect: "NoSchedule"}}
	facts := view.PoolFacts{
		Pool: &pool, Members: []corev1.Node{right, node("node-2", "False")},
		Pods: map[string][]*corev1.Pod{"node-2": {
			{ObjectMeta: metav1.ObjectMeta{Namespace: "shop"}, Spec: corev1.PodSpec{NodeName: "node-2", Containers: []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: list("cpu", "4", "memory", "2Gi")}}}}},
			{Spec: corev1.PodSpec{NodeName: "node-2", Containers: []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: list("cpu", "4")}}}}, Status: corev1.PodStatus{Phase: corev1.PodSucceeded}},
		}},
		Events: []corev1.Event{
			{LastTimestamp: *at(noon.Add(-time.Minute)), Type: "Warning", Reason: "DriftCorrected", Message: "later"},
			{LastTimestamp: *at(noon.Add(-time.Hour)), Type: "Normal", Reason: "NodesJoined", Message: "earlier"},
		},
		Used: &capacity.Used{Nodes: 2, MeasuredNodes: 1, Resources: list("cpu", "1500m", "memory", "3Gi")},
	}
	want := `Name:        worker
Status:      Healthy, said so
Members:     nodes with node-role.kubernetes.io/worker
Nodes:       1 of 2 ready
Requested:   cpu    25%   4 of 16
Used:        at least 1.5 CPU, 3Gi memory (of 1 of 2 nodes)
Free:        8 CPU, 8Gi memory, on 1 of 2 nodes
Lost:        not ready: 1 node, 8 CPU, 8Gi memory
Fits now:    8 CPU, 8Gi memory, on node-1
Filled by:   shop 100% of the requested CPU
             shop/Pod/ 100%
Asks for:    label example.com/pool=worker
             annotation example.com/evil=[2J
             taint example.com/pool=x:NoSchedule
             RuntimeClass node-pool-worker, handler runc

NODE     READY   CPU   MEMORY   PODS   LACKS
node-2   no      50%   25%      10%    annotation example.com/evil, label example.com/pool, taint example.com/pool:NoSchedule
node-1   yes     0%    0%       0%     -

AGE   TYPE      REASON           MESSAGE
60m   Normal    NodesJoined      earlier
60s   Warning   DriftCorrected   later
`
	var out strings.Builder
	if err := printDetail(&out, detailOf(t, facts), false, noon, term.Screen{}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	// The rest must still be shown if the user is not allowed to read pods.
	facts.Pods = nil
	if got := lines(t, membersTable(detailOf(t, facts).Members, noon), term.Screen{})[1]; got != "node-1   yes     -     -        -      -" {
		t.Errorf("without pods: %q", got)
	}
	// Events that the user is not allowed to read must not be shown as none.
	facts.Events, facts.NoEvents = nil, true
	out.Reset()
	if err := printDetail(&out, detailOf(t, facts), false, noon, term.Screen{}); err != nil {
		t.Fatal(err)
	}
	if !strings.HasSuffix(out.String(), "\n\nRecent events are not known.\n") {
		t.Errorf("without events:\n%s", out.String())
	}
}

// TestMemberBeingEmptied checks that a node that is being emptied within budgets is marked as such
// only for the pool that empties it.
func TestMemberBeingEmptied(t *testing.T) {
	node := objects.Node("n").Role("worker").Closed("worker", "gpu", noon.Add(-5*time.Minute)).Closed("other", "gpu", noon.Add(-time.Hour)).Obj()
	facts := view.PoolFacts{Pool: objects.Pool("worker").TaintWithinBudgets("gpu", "").Obj(), Members: []corev1.Node{*node}}
	if got := lines(t, membersTable(detailOf(t, facts).Members, noon), term.Screen{})[1]; !strings.HasSuffix(got, "  taint gpu:NoExecute, being emptied for 5m") {
		t.Errorf("%q", got)
	}
	facts.Pool = objects.Pool("third").MatchLabels("kubernetes.io/os", "linux").TaintWithinBudgets("gpu", "").Obj()
	if got := lines(t, membersTable(detailOf(t, facts).Members, noon), term.Screen{})[1]; !strings.HasSuffix(got, "  taint gpu:NoExecute") {
		t.Errorf("of another pool: %q", got)
	}
}

// TestSharesText checks that rounded percentages add up to 100.
func TestSharesText(t *testing.T) {
	third := 100.0 / 3
	got := sharesText([]capacity.Share{{Name: "a", Percent: third}, {Name: "b", Percent: third}, {Percent: third}})
	if want := "a 34%, b 33%, the rest 33%"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
