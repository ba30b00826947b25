// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/test/framework"
)

// installSquads installs the kind Squad, for which Tidekeeper has no code, and grants the manager
// the right to read its scale subresource.
func installSquads(t *testing.T) {
	t.Helper()
	text, err := os.ReadFile("testdata/squad_crd.yaml")
	if err != nil {
		t.Fatal(err)
	}
	crd := &unstructured.Unstructured{}
	if err := yaml.Unmarshal(text, crd); err != nil {
		t.Fatal(err)
	}
	cluster.Apply(t, crd)
	allowSquads(t, metav1.NamespaceDefault)
}

// allowSquads grants the manager the right to read the scale subresource of Squads in the given
// namespace.
func allowSquads(t *testing.T, namespace string) {
	t.Helper()
	cluster.Apply(t, &rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Name: "squads", Namespace: namespace},
		Rules:      []rbacv1.PolicyRule{rule("example.com", "squads/scale", "get")},
	})
	cluster.Apply(t, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "squads", Namespace: namespace},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "squads"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: framework.ManagerNamespace, Name: framework.ManagerAccount}},
	})
	cluster.EventuallyAllowed(t, framework.ManagerUser, framework.Right{Verb: "get", Group: "example.com", Resource: "squads/scale", Namespace: namespace}, true)
}

// squad creates an object of the kind Squad. If the selector is not empty, it selects the squad's
// pods.
func squad(t *testing.T, name, selector string, replicas int64) {
	t.Helper()
	s := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.com/v1", "kind": "Squad",
		"metadata": map[string]any{"namespace": metav1.NamespaceDefault, "name": name},
		"spec":     map[string]any{"replicas": replicas},
	}}
	framework.Eventually(t, "squads are served", func() error {
		return client.IgnoreAlreadyExists(cluster.Create(t.Context(), s))
	})
	t.Cleanup(func() { cluster.Delete(t, s) })
	cluster.Refresh(t, s)
	before := s.DeepCopy()
	s.Object["status"] = map[string]any{"replicas": replicas, "selector": selector}
	if err := cluster.Status().Patch(t.Context(), s, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
}

// tend acts as the controller of the kind Squad: it creates pods until there are `wanted` pods.
func tend(t *testing.T, name string, wanted int) error {
	t.Helper()
	pods := standing(t, name)
	for range wanted - len(pods) {
		pod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{GenerateName: name + "-", Namespace: metav1.NamespaceDefault, Labels: map[string]string{"app": name}},
			Spec:       app,
		}
		if err := cluster.Create(t.Context(), pod); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { cluster.Delete(t, pod) })
	}
	for _, pod := range pods {
		if !slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue }) {
			return fmt.Errorf("pod %s is not ready", pod.Name)
		}
	}
	if len(pods) < wanted {
		return fmt.Errorf("there were %d pods", len(pods))
	}
	return nil
}

func ofSquad(r *tidekeeperv1.ScheduledRestart) *tidekeeperv1.ScheduledRestart {
	r.Spec.TargetRef.APIVersion = "example.com/v1"
	return r
}

// TestEvictByTheScaleSubresource checks that a target of any kind with a scale subresource is
// restarted by evicting the pods that the scale's selector matches, and no others.
func TestEvictByTheScaleSubresource(t *testing.T) {
	cluster.AddNodes(t, "squad", 1)
	installSquads(t)
	manager := cluster.StartManager(t)
	r := ofSquad(evictionOf("Squad", "squad"))
	cluster.Apply(t, r)
	eventuallyRestartIs(t, r, "TargetNotFound")

	squad(t, "squad", "app=squad", 2)
	workload(t, "Deployment", "bystander")
	framework.Eventually(t, "the pods are ready", func() error { return tend(t, "squad", 2) })
	// While no tick is due, the manager reads the target only every ten minutes, and at each edit
	// of the ScheduledRestart.
	cluster.Change(t, r, func() { r.Labels = map[string]string{"edited": "now"} })
	eventuallyRestartIs(t, r, "Suspended")
	bystanders, before := older(t, "bystander"), older(t, "squad")
	tick := request(t, r)
	eventuallyRestart(t, r, framework.Patience, "is complete", func() error {
		if err := tend(t, "squad", 2); err != nil {
			return err
		}
		if len(r.Status.History) == 0 {
			return errors.New("it is not")
		}
		return nil
	})
	if record := r.Status.History[0]; record.Outcome != tidekeeperv1.OutcomeSucceeded || !record.ScheduledTime.Time.Equal(tick) || record.Pods != 2 {
		t.Errorf("the record is %+v", record)
	}
	after := standing(t, "squad")
	for _, pod := range after {
		if slices.Contains(before, pod.UID) {
			t.Errorf("%s was not evicted", pod.Name)
		}
	}
	for _, pod := range standing(t, "bystander") {
		if !slices.Contains(bystanders, pod.UID) {
			t.Errorf("%s was evicted", pod.Name)
		}
	}

	// An empty selector would match all pods in the namespace.
	squad(t, "all", "", 3)
	all := ofSquad(evictionOf("Squad", "all"))
	cluster.Apply(t, all)
	eventuallyRestartIs(t, all, "TargetNotFound")
	if ready := meta.FindStatusCondition(all.Status.Conditions, "Ready"); !strings.Contains(ready.Message, "does not select pods") {
		t.Errorf("the condition says %q", ready.Message)
	}
	manager.AssertSound(t)
}

// TestOtherKindsAreEvictedOnly checks that a target of a kind without built-in support requires the
// method Evict, and the right to evict pods.
func TestOtherKindsAreEvictedOnly(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(*tidekeeperv1.ScheduledRestartSpec)
		want   string
	}{
		"a rollout":         {func(s *tidekeeperv1.ScheduledRestartSpec) { s.Method = "" }, "any other kind that has a scale subresource needs method: Evict"},
		"the age of pods":   {func(s *tidekeeperv1.ScheduledRestartSpec) { s.MaxPodAgeSeconds = 3600 }, "maxPodAgeSeconds is not for a kind that is known by its scale subresource only"},
		"no kind":           {func(s *tidekeeperv1.ScheduledRestartSpec) { s.TargetRef.Kind = "squads" }, "kind must be the name of a kind, for instance Deployment"},
		"no group, version": {func(s *tidekeeperv1.ScheduledRestartSpec) { s.TargetRef.APIVersion = "example.com" }, "apiVersion must be the group and version of a kind, for instance apps/v1"},
	} {
		r := ofSquad(evictionOf("Squad", "wrong"))
		tt.change(&r.Spec)
		if err := cluster.Create(t.Context(), r, client.DryRunAll); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %v, want %q", name, err, tt.want)
		}
	}
	ivan := user(t, "ivan", bindRole("ivan", "tidekeeper-scheduledrestart-edit"), allow("ivan", rule("example.com", "*", "*")))
	judy := user(t, "judy", bindRole("judy", "tidekeeper-scheduledrestart-edit"), allow("judy", rule("", "pods/eviction", "create")))
	framework.Eventually(t, "who may evict pods may have them evicted", func() error {
		return judy.Create(t.Context(), ofSquad(evictionOf("Squad", "policy-judy")), client.DryRunAll)
	})
	r := ofSquad(evictionOf("Squad", "policy-squad"))
	cluster.Apply(t, r)
	framework.Eventually(t, "ivan is refused by the policy", func() error {
		want := "ivan may not create pods/eviction in the namespace default, and so may not decide when pods are evicted"
		for _, err := range []error{
			ivan.Create(t.Context(), ofSquad(evictionOf("Squad", "policy-ivan"))),
			ivan.Patch(t.Context(), r.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(`{"spec":{"targetRef":{"name":"another"}}}`))),
			ivan.Delete(t.Context(), r.DeepCopy()),
		} {
			if err == nil || !strings.HasSuffix(err.Error(), want) {
				return fmt.Errorf("got %w, want %q", err, want)
			}
		}
		return nil
	})
}
