// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package capacity

import (
	"fmt"
	"math/rand/v2"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"tidekeeper.dev/tidekeeper/test/framework"
)

// onNewNodes is the part of the output of pools fit and pools pending that is about new nodes.
type onNewNodes struct {
	Copies  int64
	NewNode struct {
		Copies int64
		Needed *int
		AtMost []string
	}
}

// growing is a world in which all nodes have 2 CPUs, of which the pod of a DaemonSet requests 500m.
type growing struct {
	*world
	made int // number of nodes added so far
}

// add adds nodes up to the given total, each with a pod of the DaemonSet.
func (w *growing) add(t *testing.T, nodes int) {
	t.Helper()
	for ; len(w.nodes) < nodes; w.made++ {
		w.addPlain(t, fmt.Sprint("grows-", w.made), "")
	}
	w.awaitNodes(t)
	w.placed(t, "agent", nodes, 0)
}

// placed waits until the given numbers of pods have a node, and have been refused by the scheduler.
func (w *growing) placed(t *testing.T, app string, placed, pending int) {
	t.Helper()
	framework.Eventually(t, fmt.Sprintf("%d pods of %s have a node, and %d cannot have one", placed, app, pending), func() error {
		on, off := 0, 0
		for _, p := range w.podsOf(t, client.MatchingLabels{"app": app}) {
			switch {
			case p.Spec.NodeName != "":
				on++
			case unschedulable(&p) != "":
				off++
			}
		}
		if on != placed || off != pending {
			return fmt.Errorf("%d have a node, %d cannot have one", on, off)
		}
		return nil
	})
}

func (w *growing) scaleTo(t *testing.T, name string, replicas int32) {
	t.Helper()
	d := framework.Deployment(name, 0, corev1.PodSpec{})
	d.Namespace = w.name
	cluster.Change(t, d, func() { d.Spec.Replicas = &replicas })
}

// needed asks for the number of new nodes that `more` copies of a Deployment need.
func (w *growing) needed(t *testing.T, name string, more int, want onNewNodes) {
	t.Helper()
	var fits []onNewNodes
	answer(t, &fits, "", []string{"pools", "fit", w.name, "-n", w.name, "--like", "deployment/" + name, "--copies", fmt.Sprint(more)}, 2)
	is := fits[0]
	if is.Copies != want.Copies || is.NewNode.Copies != want.NewNode.Copies || is.NewNode.Needed == nil || *is.NewNode.Needed != *want.NewNode.Needed || len(is.NewNode.AtMost) > 0 {
		t.Errorf("%d more copies of %s: %+v, want %+v", more, name, is, want)
	}
}

func newNodes(now, each int64, needed int) (n onNewNodes) {
	n.Copies, n.NewNode.Copies, n.NewNode.Needed = now, each, &needed
	return n
}

// TestNewNodes compares the answers about nodes that are not there yet with the scheduler, after nodes
// have been added that are like the pool's nodeTemplate, which is taken from a sample node.
func TestNewNodes(t *testing.T) {
	w := &growing{world: newWorld(t, "grows", rand.New(rand.NewPCG(1, 2)))}
	tolerates := []corev1.Toleration{{Key: "example.com/pool", Operator: corev1.TolerationOpExists}}
	spec := func(cpu string) corev1.PodSpec {
		return corev1.PodSpec{NodeSelector: map[string]string{worldLabel: w.name}, TerminationGracePeriodSeconds: new(int64(0)), Tolerations: tolerates, Containers: []corev1.Container{container("app", list("cpu", cpu))}}
	}
	labels := map[string]string{"app": "agent"}
	cluster.Apply(t, &appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.name, Name: "agent"},
		Spec: appsv1.DaemonSetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: spec("500m")},
		},
	})
	w.add(t, 1)
	patch := tide(t, "", "", "pools", "node-template", "grows-0")
	if out, err := cluster.Kubectl(patch.stdout, "patch", "nodepool", w.name, "--type=merge", "--patch-file=/dev/stdin"); err != nil {
		t.Fatalf("the template of a sample node: %s\n%v\n%s", patch.stderr, err, out)
	}
	web := framework.Deployment("web", 1, spec("400m"))
	single := framework.Deployment("single", 0, spec("100m"))
	single.Spec.Template.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{
		{LabelSelector: &metav1.LabelSelector{MatchLabels: single.Spec.Template.Labels}, TopologyKey: corev1.LabelHostname},
	}}}
	for _, d := range []*appsv1.Deployment{web, single} {
		d.Namespace = w.name
		cluster.Apply(t, d)
	}
	w.placed(t, "web", 1, 0)

	// A node has room for three of 400m beside the DaemonSet. One is there.
	w.needed(t, "web", 9, newNodes(2, 3, 3))
	w.add(t, 3)
	w.scaleTo(t, "web", 10)
	w.placed(t, "web", 9, 1)
	// A node of today without other pods would do.
	w.pendingIs(t, "FitsAnEmptyNode")
	w.add(t, 4)
	w.placed(t, "web", 10, 0)

	// Each of the four nodes takes a pod.
	w.needed(t, "single", 6, newNodes(4, 1, 2))
	w.scaleTo(t, "single", 6)
	w.placed(t, "single", 4, 2)
	w.add(t, 5)
	w.placed(t, "single", 5, 1)
	w.add(t, 6)
	w.placed(t, "single", 6, 0)

	// All six nodes are full: the loss of one leaves three and one without place, except on a new node.
	w.scaleTo(t, "web", 18)
	w.placed(t, "web", 18, 0)
	for added, homeless := range map[int]int{0: 4, 1: 0} {
		var losses []loss
		answer(t, &losses, "", []string{"pools", "loss", "--node", "grows-0", "--new-nodes", fmt.Sprintf("%s=%d", w.name, added)}, 2)
		if len(losses) != 1 || losses[0].homeless() != homeless || len(losses[0].AtMost) > 0 {
			t.Errorf("with %d new nodes: %+v, want %d pods without place", added, losses, homeless)
		}
	}
	w.lose(t, []string{"grows-0"})
	if pending := w.settle(t, []string{"grows-0"}, 18+6+5); len(pending) != 4 {
		t.Errorf("the scheduler leaves %d pods without place, want 4", len(pending))
	}
	w.add(t, 6)
	w.placed(t, "web", 18, 0)
	w.placed(t, "single", 6, 0)

	// No node of today is large enough for a pod of 3 CPUs, and a new one is.
	if out, err := cluster.Kubectl(`{"spec":{"nodeTemplate":{"allocatable":{"cpu":"4"}}}}`, "patch", "nodepool", w.name, "--type=merge", "--patch-file=/dev/stdin"); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	big := framework.Deployment("big", 1, spec("3"))
	big.Namespace = w.name
	cluster.Apply(t, big)
	w.placed(t, "big", 0, 1)
	w.pendingIs(t, "FitsANewNode")
	n := framework.Node("grows-big")
	n.Labels = map[string]string{worldLabel: w.name, corev1.LabelHostname: n.Name}
	n.Status.Allocatable = list("cpu", "4", "memory", "4Gi", "pods", "100")
	w.addNode(t, n)
	w.placed(t, "big", 1, 0)
}

// pendingIs checks the answer of pools pending about the only group of pending pods.
func (w *growing) pendingIs(t *testing.T, want string) {
	t.Helper()
	groups := w.pending(t, 2)
	if len(groups) != 1 || len(groups[0].Pools) != 1 || groups[0].Pools[0].Answer != want {
		t.Errorf("pending pods: %+v, want %s", groups, want)
	}
}

// TestNodeTemplateOf checks the errors of pools node-template, and a template from a file.
func TestNodeTemplateOf(t *testing.T) {
	machines := `
apiVersion: cluster.x-k8s.io/v1beta2
kind: MachineDeployment
metadata: {name: workers, annotations: {capacity.cluster-autoscaler.kubernetes.io/cpu: "4", capacity.cluster-autoscaler.kubernetes.io/memory: 16Gi}}
`
	for _, tt := range []struct {
		stdin, says string
		code        int
		args        []string
	}{
		{"", "error: write either names of nodes or -f FILE\n", 1, nil},
		{machines, "error: write either names of nodes or -f FILE\n", 1, []string{"a", "-f", "-"}},
		{"", "error: there is no Node \"none\"\n", 3, []string{"none"}},
		{"{apiVersion: v1, kind: Pod, metadata: {name: a}}", "error: Pod a: v1 does not describe nodes: write a Node, a MachineDeployment of Cluster API, or a NodePool and NodeClaims of Karpenter\n", 1, []string{"-f", "-"}},
		{machines, "", 0, []string{"-f", "-"}},
	} {
		r := tide(t, tt.stdin, "", append([]string{"pools", "node-template"}, tt.args...)...)
		want := ""
		if tt.code == 0 {
			want = "spec:\n  nodeTemplate:\n    allocatable:\n      cpu: \"4\"\n      memory: 16Gi\n      pods: \"110\"\n"
		}
		if r.code != tt.code || r.stderr != tt.says || r.stdout != want {
			t.Errorf("%v: exit code %d, %q, %q; want %d, %q, %q", tt.args, r.code, r.stdout, r.stderr, tt.code, want, tt.says)
		}
	}
}
