// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package nodepool

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"
)

const evictionSettle = time.Minute

// waits, isAdmitted and tainted make the kinds of node that a pool with a
// NoExecute taint has.
func waits(node string, victims int) evictee {
	return evictee{node: node, waiting: true, victims: victims}
}

// isAdmitted: nobody has counted the victims of a node that is admitted; that
// it is admitted must be enough.
func isAdmitted(node string) evictee { return evictee{node: node, admitted: true} }

func tainted(node string, ago time.Duration, victims int) evictee {
	return evictee{node: node, since: planTime.Add(-ago), victims: victims}
}

func TestNextEvictions(t *testing.T) {
	const long = time.Hour
	for _, tc := range []struct {
		name  string
		nodes []evictee
		share int
		admit []string
		again time.Duration
	}{
		{name: "no nodes, nothing to do", share: 50},
		{
			name:  "nobody waits, nothing to do",
			nodes: []evictee{tainted("a", long, 0), tainted("b", 0, 4)}, share: 50,
		},
		{
			name:  "a quarter of four is one: the first, and the others wait",
			nodes: []evictee{waits("a", 1), waits("b", 1), waits("c", 1), waits("d", 1)}, share: 25,
			admit: []string{"a"}, again: 15 * time.Second,
		},
		{
			name:  "a share of less than one node is one node",
			nodes: []evictee{waits("a", 1), waits("b", 1), waits("c", 1)}, share: 10,
			admit: []string{"a"}, again: 15 * time.Second,
		},
		{
			name:  "no share at all is one node",
			nodes: []evictee{waits("a", 1), waits("b", 1)}, share: 0,
			admit: []string{"a"}, again: 15 * time.Second,
		},
		{
			name:  "a share is rounded down",
			nodes: []evictee{waits("a", 1), waits("b", 1), waits("c", 1), waits("d", 1), waits("e", 1)}, share: 50,
			admit: []string{"a", "b"}, again: 15 * time.Second,
		},
		{
			name:  "the share is of all the pool's nodes, also those that are done",
			nodes: []evictee{waits("a", 1), waits("b", 1), waits("c", 1), tainted("d", long, 0)}, share: 50,
			admit: []string{"a", "b"}, again: 15 * time.Second,
		},
		{
			name:  "if all may go, nobody waits and nothing is to be asked again",
			nodes: []evictee{waits("a", 1), waits("b", 1)}, share: 100,
			admit: []string{"a", "b"},
		},
		{
			name:  "the emptiest goes first",
			nodes: []evictee{waits("a", 9), waits("b", 2), waits("c", 5)}, share: 67,
			admit: []string{"b", "c"}, again: 15 * time.Second,
		},
		{
			name:  "nodes without victims never wait, and take nobody's turn",
			nodes: []evictee{waits("a", 0), waits("b", 5), waits("c", 0), waits("d", 5)}, share: 25,
			admit: []string{"a", "b", "c"}, again: 15 * time.Second,
		},
		{
			name:  "nor do they when the share is spent",
			nodes: []evictee{waits("a", 0), isAdmitted("b"), waits("c", 1)}, share: 25,
			admit: []string{"a"}, again: 15 * time.Second,
		},
		{
			name:  "a node that is admitted but not tainted yet counts",
			nodes: []evictee{isAdmitted("a"), waits("b", 1)}, share: 50,
			again: 15 * time.Second,
		},
		{
			name:  "a node counts until its victims are gone, however long that takes",
			nodes: []evictee{tainted("a", long, 1), waits("b", 1)}, share: 50,
			again: 15 * time.Second,
		},
		{
			name:  "and until it has settled, also if its victims are gone: they have to start elsewhere",
			nodes: []evictee{tainted("a", evictionSettle-time.Second, 0), waits("b", 1)}, share: 50,
			again: 15 * time.Second,
		},
		{
			name:  "settled and empty, it counts no more",
			nodes: []evictee{tainted("a", evictionSettle, 0), waits("b", 1)}, share: 50,
			admit: []string{"b"},
		},
		{
			name:  "a node whose taint does not say when it was added counts by its victims alone",
			nodes: []evictee{{node: "a"}, waits("b", 1)}, share: 50,
			admit: []string{"b"},
		},
		{
			name:  "the clock of the manager before was a little ahead: its last node counts",
			nodes: []evictee{tainted("a", -2*time.Second, 0), waits("b", 1)}, share: 50,
			again: 15 * time.Second,
		},
		{
			name:  "a time far ahead is of a clock that was wrong, and holds nothing up",
			nodes: []evictee{tainted("a", -3*time.Hour, 0), waits("b", 1)}, share: 50,
			admit: []string{"b"},
		},
		{
			name:  "but its victims count",
			nodes: []evictee{tainted("a", -3*time.Hour, 2), waits("b", 1)}, share: 50,
			again: 15 * time.Second,
		},
		{
			name:  "more nodes than the share may be under way, for instance after it was made smaller",
			nodes: []evictee{tainted("a", 0, 1), tainted("b", 0, 1), tainted("c", 0, 1), waits("d", 1)}, share: 25,
			again: 15 * time.Second,
		},
		{
			name: "a node that is being emptied gets the pool's next taint at once, and no second node beside it",
			nodes: []evictee{
				{node: "b", waiting: true, victims: 5, since: planTime.Add(-time.Second)},
				waits("a", 1),
			}, share: 50,
			admit: []string{"b"}, again: 15 * time.Second,
		},
		{
			name: "a node that was emptied long ago waits its turn for the pool's next taint",
			nodes: []evictee{
				{node: "b", waiting: true, victims: 5, since: planTime.Add(-long)},
				waits("a", 1),
			}, share: 50,
			admit: []string{"a"}, again: 15 * time.Second,
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			for range 2 {
				admit, again := nextEvictions(slices.Clone(tc.nodes), tc.share, evictionSettle, planTime)
				if diff := cmp.Diff(tc.admit, admit, cmpopts.EquateEmpty()); diff != "" {
					t.Errorf("admitted (-want +got):\n%s", diff)
				}
				if again != tc.again {
					t.Errorf("ask again after %v; want %v", again, tc.again)
				}
				slices.Reverse(tc.nodes) // The order of the nodes means nothing.
			}
		})
	}
}

// A short settling time must not become a busy loop.
func TestNextEvictionsAsksAtMostEverySecond(t *testing.T) {
	if _, again := nextEvictions([]evictee{waits("a", 1), waits("b", 1)}, 1, 0, planTime); again != time.Second {
		t.Errorf("ask again after %v; want 1s", again)
	}
}

// However pods come and go and whenever the question is asked, never more
// nodes than the share, or one, are being emptied at a time; and in the end
// every node has the taint.
func TestNextEvictionsIsBoundedAndEnds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		share := rapid.IntRange(0, 120).Draw(t, "share")
		nodes := make([]evictee, rapid.IntRange(1, 12).Draw(t, "nodes"))
		for i := range nodes {
			nodes[i] = waits(fmt.Sprintf("n%02d", i), rapid.IntRange(0, 3).Draw(t, "pods"))
		}
		bound := max(1, len(nodes)*share/100)
		now := planTime
		// emptied are the nodes that had victims when they were admitted.
		emptied := map[string]bool{}

		for turn := 0; slices.ContainsFunc(nodes, func(n evictee) bool { return n.waiting || n.admitted }); turn++ {
			if turn > 500 {
				t.Fatalf("not every node is reached: %+v", nodes)
			}
			restless := turn < 50
			asked := slices.Clone(nodes)
			for i := range asked {
				if asked[i].admitted {
					asked[i].victims = 0 // Nobody counts them; see isAdmitted.
				}
			}
			admit, again := nextEvictions(rapid.Permutation(asked).Draw(t, "order"), share, evictionSettle, now)
			for _, name := range admit {
				i := slices.IndexFunc(nodes, func(n evictee) bool { return n.node == name })
				if !nodes[i].waiting {
					t.Fatalf("node %s is admitted, which does not wait", name)
				}
				nodes[i].waiting, nodes[i].admitted = false, true
				emptied[name] = nodes[i].victims > 0
			}
			if left := slices.ContainsFunc(nodes, func(n evictee) bool { return n.waiting }); left != (again > 0) {
				t.Fatalf("ask again after %v, and nodes wait: %v", again, left)
			}

			busy := []string{}
			for _, n := range nodes {
				if emptied[n.node] && (n.admitted || !n.waiting && (n.victims > 0 || now.Sub(n.since) < evictionSettle)) {
					busy = append(busy, n.node)
				}
			}
			if len(busy) > bound {
				t.Fatalf("of %d nodes with a share of %d %%, %v are being emptied at once", len(nodes), share, busy)
			}

			now = now.Add(time.Duration(rapid.IntRange(1, 40).Draw(t, "seconds")) * time.Second)
			for i := range nodes {
				n := &nodes[i]
				switch {
				case n.admitted && (!restless || rapid.Bool().Draw(t, "written")):
					n.admitted, n.since = false, now
				case n.waiting && restless:
					n.victims = max(0, n.victims+rapid.IntRange(-1, 1).Draw(t, "pods come and go"))
				case !n.waiting && !n.admitted && n.victims > 0 && (!restless || rapid.Bool().Draw(t, "one pod ends")):
					n.victims--
				}
			}
		}
	})
}

func TestEvicting(t *testing.T) {
	pool := MakePool("worker").Taint("a", "1", noSchedule).Taint("b", "2", noExecute).Taint("c", "3", preferNoSchedule).Taint("b", "4", noSchedule)
	want := []corev1.Taint{{Key: "b", Value: "2", Effect: noExecute}}
	if diff := cmp.Diff(want, evicting(pool.Obj())); diff != "" {
		t.Errorf("evicting (-want +got):\n%s", diff)
	}
	if got := evicting(MakePool("worker").Taint("a", "1", noSchedule).Obj()); got != nil {
		t.Errorf("a pool that evicts nobody has %v", got)
	}
}

// What the taint eviction controller of Kubernetes does with the pod is what
// counts; see GetMatchingTolerations and getMinTolerationTime there.
func TestIsVictim(t *testing.T) {
	seconds := func(n int64, t corev1.Toleration) corev1.Toleration {
		t.TolerationSeconds = &n
		return t
	}
	gpu := corev1.Toleration{Key: "gpu", Operator: corev1.TolerationOpEqual, Value: "1", Effect: noExecute}
	gpuExists := corev1.Toleration{Key: "gpu", Operator: corev1.TolerationOpExists}
	everything := corev1.Toleration{Operator: corev1.TolerationOpExists}
	one := []corev1.Taint{{Key: "gpu", Value: "1", Effect: noExecute}}
	two := append(slices.Clone(one), corev1.Taint{Key: "fpga", Effect: noExecute})

	for _, tc := range []struct {
		name   string
		pod    *PodMaker
		taints []corev1.Taint
		want   bool
	}{
		{"a pod without tolerations is driven out", MakePod("p"), one, true},
		{"a pod is safe from no taint at all", MakePod("p"), nil, false},
		{"a pod that tolerates the taint stays", MakePod("p").Tolerating(gpu), one, false},
		{"an empty operator is Equal", MakePod("p").Tolerating(corev1.Toleration{Key: "gpu", Value: "1"}), one, false},
		{"a pod that tolerates any value stays", MakePod("p").Tolerating(gpuExists), one, false},
		{"a pod that tolerates everything stays", MakePod("p").Tolerating(everything), two, false},
		{"another value is not tolerated", MakePod("p").Tolerating(corev1.Toleration{Key: "gpu", Value: "2"}), one, true},
		{"another effect is not tolerated", MakePod("p").Tolerating(corev1.Toleration{Key: "gpu", Value: "1", Effect: noSchedule}), one, true},
		{"a pod that tolerates it for a while goes when that has passed", MakePod("p").Tolerating(seconds(3600, gpu)), one, true},
		{"a pod that tolerates it for no time at all goes", MakePod("p").Tolerating(seconds(0, gpu)), one, true},
		{"of two taints one not tolerated is enough", MakePod("p").Tolerating(gpu), two, true},
		{"of two taints one tolerated for a while is enough", MakePod("p").Tolerating(gpu, seconds(60, corev1.Toleration{Key: "fpga", Operator: corev1.TolerationOpExists})), two, true},
		{"both tolerated for good, it stays", MakePod("p").Tolerating(gpu, corev1.Toleration{Key: "fpga", Operator: corev1.TolerationOpExists}), two, false},
		{"a limit on another taint means nothing", MakePod("p").Tolerating(gpu, seconds(300, corev1.Toleration{Key: corev1.TaintNodeNotReady, Operator: corev1.TolerationOpExists})), one, false},
		{"of two tolerations that match, the first counts: for good", MakePod("p").Tolerating(gpu, seconds(60, gpuExists)), one, false},
		{"of two tolerations that match, the first counts: for a while", MakePod("p").Tolerating(seconds(60, gpuExists), gpu), one, true},
		{"a pod that has succeeded has nothing to lose", MakePod("p").Phase(corev1.PodSucceeded), one, false},
		{"nor has one that has failed", MakePod("p").Phase(corev1.PodFailed), one, false},
		{"a pending pod has its place to lose", MakePod("p").Phase(corev1.PodPending), one, true},
		{"of a pod on a silent node nothing is known: it counts", MakePod("p").Phase(corev1.PodUnknown), one, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			pod := tc.pod.Obj()
			if got := isVictim(pod, tc.taints); got != tc.want {
				t.Errorf("isVictim = %v; want %v; tolerations %v", got, tc.want, pod.Spec.Tolerations)
			}
			if diff := cmp.Diff(tc.pod.Obj(), pod); diff != "" {
				t.Errorf("asking changed the pod (-before +after):\n%s", diff)
			}
		})
	}
}

func TestLastEviction(t *testing.T) {
	early, late := planTime.Add(-time.Hour), planTime
	ours := []corev1.Taint{{Key: "gpu", Value: "1", Effect: noExecute}, {Key: "fpga", Effect: noExecute}}
	for _, tc := range []struct {
		name string
		node *NodeMaker
		want time.Time
	}{
		{"a node without taints", MakeNode("a"), time.Time{}},
		{"the time of the taint", MakeNode("a").TaintAt("gpu", "1", noExecute, early), early},
		{"the later of two", MakeNode("a").TaintAt("gpu", "1", noExecute, early).TaintAt("fpga", "", noExecute, late), late},
		{"whichever comes first in the list", MakeNode("a").TaintAt("fpga", "", noExecute, late).TaintAt("gpu", "1", noExecute, early), late},
		{"a taint without a time has none", MakeNode("a").Taint("gpu", "1", noExecute), time.Time{}},
		{"not that of another taint", MakeNode("a").TaintAt("other", "1", noExecute, late).TaintAt("gpu", "1", noExecute, early), early},
		{"not that of another effect", MakeNode("a").TaintAt("gpu", "1", noSchedule, late), time.Time{}},
		// Or else a node on which an older pool has the key counts as being
		// emptied for ever, as its pods need not tolerate our value.
		{"not that of another value: it is another pool's", MakeNode("a").TaintAt("gpu", "2", noExecute, late), time.Time{}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := lastEviction(tc.node.Obj(), ours); !got.Equal(tc.want) {
				t.Errorf("lastEviction = %v; want %v", got, tc.want)
			}
		})
	}
}
