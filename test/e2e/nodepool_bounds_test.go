// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/test/framework"
)

// TestAPoolThatDoesNotFitDoesNotStopTheOthers exceeds the 256 KiB that the API server accepts for a
// node's annotations, which all of the node's pools share. The pool that does not fit must be left
// out on that node and report that. The other pools must not be delayed, and it must be possible to
// delete each pool.
func TestAPoolThatDoesNotFitDoesNotStopTheOthers(t *testing.T) {
	cluster.StartManager(t)
	node := addMembers(t, "room", 1)[0]
	large := func(name string, values int) *tidekeeperv1.NodePool {
		p := pool(name)
		p.Spec.Selector = &tidekeeperv1.NodeSelector{MatchLabels: map[string]tidekeeperv1.LabelValue{"kubernetes.io/hostname": tidekeeperv1.LabelValue(node)}}
		p.Spec.Annotations = map[string]tidekeeperv1.AnnotationValue{}
		for i := range values {
			// Each character takes three bytes, whereas the schema limits the number of characters.
			p.Spec.Annotations[fmt.Sprintf("room.example.com/%s-%02d", name, i)] = tidekeeperv1.AnnotationValue(strings.Repeat("水", 1024))
		}
		return p
	}
	cluster.Apply(t, pool("room"))
	healthyWith(t, "room", 1)

	first := large("room-first", 64) // 192 KiB of values; an ownership annotation that repeated the values would need the same again.
	cluster.Apply(t, first)
	healthyWith(t, "room-first", 1)
	second := large("room-second", 64)
	cluster.Apply(t, second)
	blocked := eventuallyReason(t, "room-second", "NodePatchRefused")
	if message := blocked.Status.Conditions[0].Message; !strings.Contains(fmt.Sprint(blocked.Status.Conditions), "node "+node) {
		t.Errorf("the condition does not name the node: %s", message)
	}
	cluster.EventuallyEvent(t, "NodePool", "room-second", "Warning NodePatchRefused: cannot write node "+node)

	small := framework.Pool("room")
	cluster.Change(t, small, func() { small.Spec.Labels["example.com/room-more"] = "1" })
	want := shapeFrom("room")
	want.Labels["example.com/room-first"], want.Labels["example.com/room-more"] = "10", "1"
	want.Taints = append(want.Taints, "example.com/room-first=yes:NoSchedule")
	want.Recorded = []string{"room", "room-first"}
	eventuallyShape(t, node, want)

	cluster.Delete(t, first)
	eventuallyGone(t, first)
	healthyWith(t, "room-second", 1)
	cluster.Delete(t, second)
	eventuallyGone(t, second)
	want = shapeFrom("room")
	want.Labels["example.com/room-more"] = "1"
	eventuallyShape(t, node, want)
}

// TestARefusedPoolDoesNotStopTheOthers checks that, if an admission policy forbids a setting of one
// pool, other pools' settings are still applied to the node.
func TestARefusedPoolDoesNotStopTheOthers(t *testing.T) {
	cluster.StartManager(t)
	node := addMembers(t, "denied", 1)[0]
	forbid(t, "denied.tidekeeper.test", `!has(object.metadata.labels) || !('example.com/denied-one' in object.metadata.labels)`)
	one, other := pool("denied-one"), pool("denied")
	one.Spec.Selector = &tidekeeperv1.NodeSelector{MatchLabels: map[string]tidekeeperv1.LabelValue{"kubernetes.io/hostname": tidekeeperv1.LabelValue(node)}}
	cluster.Apply(t, one)
	cluster.Apply(t, other)
	eventuallyShape(t, node, shapeFrom("denied"))
	healthyWith(t, "denied", 1)
	eventuallyPool(t, "denied-one", "says which node and why", func(p *tidekeeperv1.NodePool) error {
		if text := fmt.Sprint(p.Status.Conditions); !strings.Contains(text, "node "+node) || !strings.Contains(text, "denied.tidekeeper.test") {
			return errors.New(text)
		}
		return is(p, "NodePatchRefused")
	})
	cluster.Change(t, other, func() { other.Spec.Taints[0].Value = "no" })
	want := shapeFrom("denied")
	want.Taints = []string{"example.com/denied=no:NoSchedule"}
	eventuallyShape(t, node, want)
}

// forbid makes the API server reject updates of nodes that do not satisfy the given CEL expression,
// until the test ends.
func forbid(t *testing.T, name, expression string) {
	t.Helper()
	fail := admissionv1.Fail
	cluster.Apply(t, &admissionv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: admissionv1.ValidatingAdmissionPolicySpec{
			FailurePolicy: &fail,
			MatchConstraints: &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{{RuleWithOperations: admissionv1.RuleWithOperations{
				Operations: []admissionv1.OperationType{admissionv1.Update},
				Rule:       admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"nodes"}},
			}}}},
			Validations: []admissionv1.Validation{{Expression: expression}},
		},
	})
	cluster.Apply(t, &admissionv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: name, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny},
		},
	})
	// The API server enforces a new policy with a short delay.
	probe := framework.Node("forbid-probe")
	probe.Spec.Unschedulable = true
	cluster.Apply(t, probe)
	key := strings.Split(expression, "'")[1]
	framework.Eventually(t, "the policy is in force", func() error {
		cluster.Refresh(t, probe)
		probe.Labels = map[string]string{key: fmt.Sprint(time.Now().UnixNano())}
		if err := cluster.Update(t.Context(), probe); !apierrors.IsInvalid(err) {
			return fmt.Errorf("it does not refuse a node: %w", err)
		}
		return nil
	})
}

// TestALongTolerationDoesNotHoldUpATaint checks that a pod that tolerates a NoExecute taint for
// years, which any tenant can create, does not delay the taint on the pool's other nodes.
func TestALongTolerationDoesNotHoldUpATaint(t *testing.T) {
	cluster.StartManager(t, "--no-execute-interval=500ms")
	nodes := addMembers(t, "linger", 3)
	years := int64(315_360_000)
	for _, node := range nodes {
		pod := podOn(node, "linger-"+node, nil)
		pod.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: &years}}
		cluster.Apply(t, pod)
	}
	p := framework.Pool("linger")
	p.Spec.Taints = []tidekeeperv1.Taint{{Key: "example.com/linger", Effect: corev1.TaintEffectNoExecute}}
	cluster.Apply(t, p)
	healthyWith(t, "linger", 3)
}

// TestNoExecuteIsBoundedAcrossPools checks that the limit on simultaneous NoExecute evictions also
// holds across many pools with one node each.
func TestNoExecuteIsBoundedAcrossPools(t *testing.T) {
	cluster.StartManager(t, "--no-execute-share=10", "--no-execute-interval=2s")
	const nodes = 4
	cluster.AddNodes(t, "each", nodes, "--labels", role("each")+"=")
	d := deployment("each", nodes, corev1.PodSpec{
		NodeSelector: map[string]string{role("each"): ""},
		TopologySpreadConstraints: []corev1.TopologySpreadConstraint{{
			MaxSkew: 1, TopologyKey: corev1.LabelHostname, WhenUnsatisfiable: corev1.DoNotSchedule,
			LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "each"}},
		}},
		Containers: []corev1.Container{{Name: "app", Image: "example.com/app:1"}},
	})
	d.Spec.Template.Annotations = map[string]string{"sandbox.tidekeeper.dev/terminated-after": "1s"}
	cluster.Apply(t, d)
	eventuallyReady(t, d)
	emptying := watchEmptying(t, "each")
	for i := range nodes {
		p := framework.Pool(fmt.Sprintf("each-%d", i+1))
		p.Spec.Selector = &tidekeeperv1.NodeSelector{MatchLabels: map[string]tidekeeperv1.LabelValue{"kubernetes.io/hostname": tidekeeperv1.LabelValue(p.Name)}}
		p.Spec.Taints = []tidekeeperv1.Taint{{Key: "example.com/each", Effect: corev1.TaintEffectNoExecute}}
		cluster.Apply(t, p)
	}
	for i := range nodes {
		healthyWith(t, fmt.Sprintf("each-%d", i+1), 1)
	}
	if most := emptying(); most != 1 {
		t.Errorf("up to %d nodes were being emptied at once; want 1, which is 10%% of the nodes of the cluster", most)
	}
}
