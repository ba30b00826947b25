// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package capacity

import (
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"pgregory.net/rapid"
)

func selecting(app string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}
}

// zoned returns nodes with four CPUs each, one in each of the given zones. A node with the zone "-"
// has no zone.
func zoned(zones ...string) (list []corev1.Node, names []string) {
	for i, zone := range zones {
		n := aNode(fmt.Sprintf("%s-%d", zone, i), "cpu", "4", "pods", "10")
		if zone != "-" {
			n.Labels[corev1.LabelTopologyZone] = zone
		}
		list, names = append(list, n), append(names, n.Name)
	}
	return list, names
}

func withApp(p corev1.Pod, app string) corev1.Pod {
	p.Labels = map[string]string{"app": app}
	return p
}

func spreads(p corev1.Pod, skew int32, key, app string) corev1.Pod {
	p.Spec.TopologySpreadConstraints = append(p.Spec.TopologySpreadConstraints, corev1.TopologySpreadConstraint{
		MaxSkew: skew, TopologyKey: key, WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: selecting(app),
	})
	return p
}

func avoids(p corev1.Pod, key, app string) corev1.Pod {
	term := corev1.PodAffinityTerm{TopologyKey: key, LabelSelector: selecting(app)}
	p.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{term}}}
	return p
}

func joins(p corev1.Pod, app string) corev1.Pod {
	term := corev1.PodAffinityTerm{TopologyKey: corev1.LabelTopologyZone, LabelSelector: selecting(app)}
	p.Spec.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{term}}}
	return p
}

func withPort(p corev1.Pod, port int32) corev1.Pod {
	p = *p.DeepCopy()
	p.Spec.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: port, HostPort: port}}
	return p
}

// TestFitBetweenPods checks the number of copies under constraints between pods, and that each
// limit is named. The package test/room compares such numbers with the scheduler.
func TestFitBetweenPods(t *testing.T) {
	const zone, host = corev1.LabelTopologyZone, corev1.LabelHostname
	web := withApp(aPod("web", "", "", "", "cpu", "1"), "web")
	on := func(node, app string) corev1.Pod {
		return withApp(aPod(app+"-on-"+node, "ReplicaSet", app, node, "cpu", "1"), app)
	}
	byNamespace := avoids(web, host, "web")
	byNamespace.Spec.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution[0].NamespaceSelector = selecting("x")
	byHash := spreads(web, 1, zone, "web")
	byHash.Spec.TopologySpreadConstraints[0].MatchLabelKeys = []string{"pod-template-hash"}
	for _, tc := range []struct {
		name    string
		zones   []string
		running []corev1.Pod
		pod     corev1.Pod
		copies  int64
		limit   string // the first entry of LimitedBy
		refused string // the first entry of Refused
		atMost  []string
	}{
		{name: "no constraint", zones: []string{"a", "b"}, pod: web, copies: 8, limit: "cpu"},
		{name: "a spread over even zones", zones: []string{"a", "b"}, pod: spreads(web, 1, zone, "web"), copies: 8, limit: "cpu"},
		{name: "a spread over uneven zones", zones: []string{"a", "a", "b"}, pod: spreads(web, 1, zone, "web"), copies: 9, limit: topologySpread},
		{name: "a spread that counts running pods", zones: []string{"a", "b"}, running: []corev1.Pod{on("a-0", "web"), on("a-0", "web")}, pod: spreads(web, 1, zone, "web"), copies: 6, limit: "cpu"},
		{name: "a spread of other pods", zones: []string{"a", "b"}, running: []corev1.Pod{on("a-0", "db"), on("a-0", "db")}, pod: spreads(web, 1, zone, "db"), copies: 4, limit: "cpu", refused: topologySpread},
		{name: "a node without zone", zones: []string{"a", "-"}, pod: spreads(web, 1, zone, "web"), copies: 4, limit: "cpu", refused: topologySpread},
		{name: "spreads over zones and nodes", zones: []string{"a", "a", "b"}, pod: spreads(spreads(web, 2, zone, "web"), 9, host, "web"), copies: 10, limit: topologySpread},
		{name: "one for each node", zones: []string{"a", "a", "b"}, pod: avoids(web, host, "web"), copies: 3, limit: ownAntiAffinity},
		{name: "one for each zone", zones: []string{"a", "a", "b"}, pod: avoids(web, zone, "web"), copies: 2, limit: ownAntiAffinity},
		{name: "not beside another workload", zones: []string{"a", "a", "b"}, running: []corev1.Pod{on("a-0", "db")}, pod: avoids(web, zone, "db"), copies: 4, limit: "cpu", refused: ownAntiAffinity},
		{name: "not wanted by another workload", zones: []string{"a", "b"}, running: []corev1.Pod{avoids(on("a-0", "db"), zone, "web")}, pod: web, copies: 4, limit: "cpu", refused: othersAntiAffinity},
		{name: "beside another workload", zones: []string{"a", "a", "b"}, running: []corev1.Pod{on("a-0", "db")}, pod: joins(web, "db"), copies: 7, limit: "cpu", refused: podAffinity},
		{name: "beside a workload that does not run", zones: []string{"a"}, pod: joins(web, "db"), refused: podAffinity},
		{name: "together, in zones of the same size", zones: []string{"a", "b"}, pod: joins(web, "web"), copies: 4, limit: "cpu", refused: podAffinity},
		{name: "together, wherever the first one is placed", zones: []string{"a", "a", "b"}, pod: joins(web, "web"), copies: 8, limit: "cpu", refused: podAffinity, atMost: []string{podAffinity}},
		{name: "a port of the node", zones: []string{"a", "b"}, running: []corev1.Pod{withPort(on("a-0", "db"), 80)}, pod: withPort(web, 80), copies: 1, limit: hostPorts, refused: hostPorts},
		{name: "another port", zones: []string{"a"}, running: []corev1.Pod{withPort(on("a-0", "db"), 81)}, pod: withPort(web, 80), copies: 1, limit: hostPorts},
		{name: "labels of namespaces", zones: []string{"a"}, pod: byNamespace, copies: 4, limit: "cpu", atMost: []string{ownAntiAffinity}},
		{name: "a label that the pod will have", zones: []string{"a"}, pod: byHash, copies: 4, limit: "cpu", atMost: []string{topologySpread}},
		{name: "several limits", zones: []string{"a", "a", "b"}, pod: spreads(avoids(web, zone, "web"), 1, "disk", "web"), refused: topologySpread},
	} {
		list, names := zoned(tc.zones...)
		f := newCluster(list, tc.running).Members(names).Fit(&tc.pod)
		first := func(counts []Count) string {
			if len(counts) == 0 {
				return ""
			}
			return counts[0].What
		}
		if f.Copies != tc.copies || first(f.LimitedBy) != tc.limit || first(f.Refused) != tc.refused || !slices.Equal(f.AtMost, tc.atMost) {
			t.Errorf("%s: %+v", tc.name, f)
		}
	}
}

// TestFitInPartOfACluster checks that nodes outside the group count towards the skew of a topology
// spread constraint, although no copies are placed on them.
func TestFitInPartOfACluster(t *testing.T) {
	list, _ := zoned("a", "a", "b")
	pod := spreads(withApp(aPod("web", "", "", "", "cpu", "1"), "web"), 1, corev1.LabelTopologyZone, "web")
	c := newCluster(list, nil)
	if f := c.Members([]string{"a-0", "a-1"}).Fit(&pod); f.Copies != 1 || len(f.AtMost) > 0 {
		t.Errorf("in one of two zones: %+v, want one copy", f)
	}
	together := joins(pod, "web")
	together.Spec.TopologySpreadConstraints = nil
	if f := c.Members([]string{"a-0", "a-1"}).Fit(&together); f.Copies != 8 || !slices.Equal(f.AtMost, []string{podAffinity}) {
		t.Errorf("the group may be placed elsewhere: %+v, want at most 8", f)
	}
}

// TestLossBetweenPods checks that pods of a lost node are placed according to the constraints
// between pods.
func TestLossBetweenPods(t *testing.T) {
	const zone, host = corev1.LabelTopologyZone, corev1.LabelHostname
	pod := func(k int, app, node string) corev1.Pod {
		return withApp(aPod(fmt.Sprintf("%s-%d", app, k), "ReplicaSet", app, node, "cpu", "1"), app)
	}
	for _, tc := range []struct {
		name    string
		zones   []string
		running []corev1.Pod
		want    int // number of pods without a place after the loss of the first node
	}{
		{"one for each node, and a node is free", []string{"a", "a", "b"}, []corev1.Pod{avoids(pod(0, "web", "a-0"), host, "web"), avoids(pod(1, "web", "a-1"), host, "web")}, 0},
		{"one for each node, and no node is free", []string{"a", "a"}, []corev1.Pod{avoids(pod(0, "web", "a-0"), host, "web"), avoids(pod(1, "web", "a-1"), host, "web")}, 1},
		{"two of the node for two nodes", []string{"a", "a", "b"}, []corev1.Pod{avoids(pod(0, "web", "a-0"), host, "web"), avoids(pod(1, "web", "a-0"), host, "web")}, 0},
		{"two of the node for one node", []string{"a", "a"}, []corev1.Pod{avoids(pod(0, "web", "a-0"), host, "web"), avoids(pod(1, "web", "a-0"), host, "web")}, 1},
		{"not wanted by a pod that was placed before", []string{"a", "a"}, []corev1.Pod{avoids(pod(0, "db", "a-0"), host, "web"), pod(0, "web", "a-0")}, 1},
		{"the zone is lost, too", []string{"a", "b"}, []corev1.Pod{spreads(pod(0, "web", "a-0"), 1, zone, "web"), spreads(pod(1, "web", "b-1"), 1, zone, "web")}, 0},
		{"the zone is left empty", []string{"a", "-", "b", "c"}, []corev1.Pod{spreads(pod(0, "web", "a-0"), 1, zone, "web"), spreads(pod(1, "web", "b-2"), 1, zone, "web")}, 0},
		{"the spread would be uneven", []string{"a", "b", "c"}, []corev1.Pod{
			spreads(pod(0, "web", "a-0"), 1, zone, "web"), spreads(pod(1, "web", "b-1"), 1, zone, "web"),
			pod(0, "db", "c-2"), pod(1, "db", "c-2"), pod(2, "db", "c-2"), pod(3, "db", "c-2"),
		}, 1},
		{"beside a pod that is lost", []string{"a", "b"}, []corev1.Pod{pod(0, "db", "a-0"), joins(pod(0, "web", "a-0"), "db")}, 0},
		{"beside a pod that does not come back", []string{"a", "b"}, []corev1.Pod{withApp(aPod("db", "", "", "a-0", "cpu", "1"), "db"), joins(pod(0, "web", "a-0"), "db")}, 1},
		{"a port that another node has free", []string{"a", "b", "c"}, []corev1.Pod{withPort(pod(0, "web", "a-0"), 80), withPort(pod(1, "web", "b-1"), 80)}, 0},
		{"a port that no node has free", []string{"a", "b"}, []corev1.Pod{withPort(pod(0, "web", "a-0"), 80), withPort(pod(1, "web", "b-1"), 80)}, 1},
		{"a port for two", []string{"a", "b"}, []corev1.Pod{withPort(pod(0, "web", "a-0"), 80), withPort(pod(0, "db", "a-0"), 80)}, 1},
	} {
		list, names := zoned(tc.zones...)
		c := newCluster(list, tc.running)
		for range 2 { // The first computation must not affect the second.
			if l := c.Lose(names[:1], nil); l.Homeless() != tc.want || len(l.AtMost) > 0 {
				t.Errorf("%s: %+v, want %d without place", tc.name, l, tc.want)
			}
		}
	}
}

// placedPod is a pod on a node.
type placedPod struct {
	pod  *corev1.Pod
	node *corev1.Node
}

// admittedByRecount reports whether anti-affinity, topology spread constraints and host ports admit
// the pod to the node, by counting all placed pods again.
func admittedByRecount(pod *corev1.Pod, node *corev1.Node, nodes []*corev1.Node, placed []placedPod) bool {
	matches := func(s *metav1.LabelSelector, p *corev1.Pod) bool {
		selector, err := metav1.LabelSelectorAsSelector(s)
		return err == nil && selector.Matches(labels.Set(p.Labels))
	}
	same := func(key string, a, b *corev1.Node) bool {
		value, has := a.Labels[key]
		other, too := b.Labels[key]
		return has && too && value == other
	}
	for _, other := range placed {
		for _, t := range antiAffinityOf(pod) {
			if same(t.TopologyKey, node, other.node) && matches(t.LabelSelector, other.pod) {
				return false
			}
		}
		for _, t := range antiAffinityOf(other.pod) {
			if same(t.TopologyKey, node, other.node) && matches(t.LabelSelector, pod) {
				return false
			}
		}
		if other.node == node && conflict(hostPortsOf(&pod.Spec), hostPortsOf(&other.pod.Spec)) {
			return false
		}
	}
	// Only nodes with the topology keys of all constraints count.
	counted := func(n *corev1.Node) bool {
		return !slices.ContainsFunc(pod.Spec.TopologySpreadConstraints, func(c corev1.TopologySpreadConstraint) bool {
			_, has := n.Labels[c.TopologyKey]
			return !has
		})
	}
	for _, c := range pod.Spec.TopologySpreadConstraints {
		counts := map[string]int{}
		for _, n := range nodes {
			if counted(n) {
				counts[n.Labels[c.TopologyKey]] += 0
			}
		}
		for _, other := range placed {
			if counted(other.node) && matches(c.LabelSelector, other.pod) {
				counts[other.node.Labels[c.TopologyKey]]++
			}
		}
		value, has := node.Labels[c.TopologyKey]
		least := 1 << 30
		for _, count := range counts {
			least = min(least, count)
		}
		self := 0
		if matches(c.LabelSelector, pod) {
			self = 1
		}
		if !has || counts[value]+self-least > int(c.MaxSkew) {
			return false
		}
	}
	return true
}

// TestPlacementsKeepConstraints checks in random clusters that each placement after a loss
// satisfies the constraints between pods, which the test evaluates by counting all pods again, and
// that a pod stays without a place only if no node admits it.
func TestPlacementsKeepConstraints(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		list, names := zoned(rapid.SliceOfN(rapid.SampledFrom([]string{"a", "a", "b", "c", "-"}), 2, 6).Draw(r, "zones")...)
		keys := rapid.SampledFrom([]string{corev1.LabelTopologyZone, corev1.LabelHostname})
		apps := rapid.SampledFrom([]string{"web", "db"})
		var pods []corev1.Pod
		for _, app := range []string{"web", "db"} {
			example := withApp(aPod("", "ReplicaSet", app, "", "cpu", "500m"), app)
			switch rapid.IntRange(0, 4).Draw(r, "kind of "+app) {
			case 0:
				example = avoids(example, keys.Draw(r, "key"), apps.Draw(r, "other"))
			case 1:
				example = spreads(example, rapid.Int32Range(1, 2).Draw(r, "skew"), keys.Draw(r, "key"), apps.Draw(r, "of"))
			case 2:
				example = spreads(spreads(example, 1, corev1.LabelTopologyZone, app), 2, corev1.LabelHostname, app)
			case 3:
				example = withPort(example, 80)
			}
			for i := range rapid.IntRange(0, 8).Draw(r, "pods of "+app) {
				pod := *example.DeepCopy()
				pod.Name, pod.Spec.NodeName = fmt.Sprintf("%s-%d", app, i), rapid.SampledFrom(names).Draw(r, "node")
				pods = append(pods, pod)
			}
		}
		c := newCluster(list, pods)
		lost := names[:rapid.IntRange(1, len(names)-1).Draw(r, "lost")]
		var left []*corev1.Node
		var placed []placedPod
		for _, n := range c.nodes {
			if slices.Contains(lost, n.object.Name) {
				continue
			}
			left = append(left, n.object)
			for _, p := range n.pods {
				placed = append(placed, placedPod{p.object, n.object})
			}
		}
		moved := 0
		c.placement.placed = func(p pod, n *node, _ vector) {
			moved++
			if !admittedByRecount(p.object, n.object, left, placed) {
				r.Fatalf("%s is placed on %s", p.object.Name, n.object.Name)
			}
			placed = append(placed, placedPod{p.object, n.object})
		}
		first := c.Lose(lost, nil)
		if moved != first.Pods-first.Homeless() {
			r.Fatalf("%d of %d pods are placed, and %d have no place", moved, first.Pods, first.Homeless())
		}
		if first.Homeless() > 0 && len(first.WithoutPlace) == 1 {
			// If there is only one workload, no pod of another workload was placed after its last
			// pod.
			stays := map[string]bool{}
			for _, p := range placed {
				stays[p.pod.Name] = true
			}
			only := true
			for i := range pods {
				only = only && pods[i].OwnerReferences[0].Name == pods[0].OwnerReferences[0].Name
			}
			for i := range pods {
				if !only || stays[pods[i].Name] {
					continue
				}
				for _, n := range left {
					if room := c.byName[n.Name].free[0] - int64(500*countOn(placed, n)); room >= 500 && admittedByRecount(&pods[i], n, left, placed) {
						r.Fatalf("%s has no place, and %s admits it", pods[i].Name, n.Name)
					}
				}
			}
		}
		c.placement.placed = nil
		if again := c.Lose(lost, nil); again.Homeless() != first.Homeless() {
			r.Fatalf("%d pods without place, and %d the second time", first.Homeless(), again.Homeless())
		}
	})
}

// countOn returns the number of pods that were moved to a node.
func countOn(placed []placedPod, n *corev1.Node) (count int) {
	for _, p := range placed {
		if p.node == n && p.pod.Spec.NodeName != n.Name {
			count++
		}
	}
	return count
}
