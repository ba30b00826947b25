// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/test/framework"
)

// TestPolicyRefusesWhoMayNotPatchTheTarget checks that users who may write ScheduledRestarts but
// not patch a workload cannot restart the workload, neither with a new ScheduledRestart nor by
// changing an existing one.
func TestPolicyRefusesWhoMayNotPatchTheTarget(t *testing.T) {
	// No manager runs because only the admission policies are tested.
	alice := user(t, "alice", bindRole("alice", "tidekeeper-scheduledrestart-edit"), allow("alice",
		// With these rights, RBAC allows the requests, so a rejection must come from the policy.
		rule("tidekeeper.dev", "scheduledrestarts/status", "update", "patch"),
		rule("apps", "deployments", "get", "list", "watch", "update", "delete")))
	// The role tidekeeper-scheduledrestart-edit is aggregated into Kubernetes' role edit.
	bob := user(t, "bob", bindRole("bob", "edit"))
	refused := func(resource, name string) string {
		return fmt.Sprintf("ValidatingAdmissionPolicy 'tidekeeper-restart-rights' with binding 'tidekeeper-restart-rights' denied request: "+
			"alice may not patch %s.apps %s in the namespace default, and so may not decide when it is restarted", resource, name)
	}
	mustRefuse := func(t *testing.T, err error, resource, name string) {
		t.Helper()
		if want := refused(resource, name); !apierrors.IsForbidden(err) || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	framework.Eventually(t, "alice may write ScheduledRestarts, and the policy is in force", func() error {
		if err := alice.Create(t.Context(), restartFor("Deployment", "policy-wait", "policy-wait"), client.DryRunAll); err == nil || !strings.HasSuffix(err.Error(), refused("deployments", "policy-wait")) {
			return fmt.Errorf("got %w", err)
		}
		return nil
	})
	framework.Eventually(t, "alice has all her rights, and bob has his", func() error {
		errs := []error{alice.List(t.Context(), &appsv1.DeploymentList{}, client.InNamespace(metav1.NamespaceDefault))}
		for _, kind := range []string{"Deployment", "StatefulSet", "DaemonSet"} {
			errs = append(errs, bob.Create(t.Context(), restartFor(kind, "policy-wait", "policy-wait"), client.DryRunAll))
		}
		return errors.Join(errs...)
	})

	for _, kind := range []string{"Deployment", "StatefulSet", "DaemonSet"} {
		resource := map[string]string{"Deployment": "deployments", "StatefulSet": "statefulsets", "DaemonSet": "daemonsets"}[kind]
		t.Run("alice may not create/"+kind, func(t *testing.T) {
			mustRefuse(t, alice.Create(t.Context(), restartFor(kind, "policy-alice", "web")), resource, "web")
			// A suspended ScheduledRestart is rejected too, because a user who resumes it later may
			// not check its target.
			suspended := restartFor(kind, "policy-alice", "web")
			suspended.Spec.Suspend = true
			mustRefuse(t, alice.Create(t.Context(), suspended), resource, "web")
		})
		t.Run("bob may/"+kind, func(t *testing.T) {
			o := restartFor(kind, "policy-bob", "web")
			if err := bob.Create(t.Context(), o); err != nil {
				t.Fatal(err)
			}
			o.Spec.Schedule = "0 4 * * *"
			if err := bob.Update(t.Context(), o); err != nil {
				t.Error(err)
			}
			if err := bob.Delete(t.Context(), o); err != nil {
				t.Error(err)
			}
		})
	}

	o := restartFor("Deployment", "policy-web", "web")
	o.Spec.Suspend = true
	o.Annotations = map[string]string{tidekeeperv1.AppliedAnnotation: `{"suspend":true}`}
	cluster.Apply(t, o)
	for _, tt := range []struct{ name, patch, target string }{
		{"to point it elsewhere", `{"spec":{"targetRef":{"name":"api"}}}`, "api"},
		{"to have it collected, by an owner that is gone", `{"metadata":{"ownerReferences":[{"apiVersion":"apps/v1","kind":"Deployment","name":"web","uid":"no-such","controller":true}]}}`, "web"},
		{"to keep it from being deleted", `{"metadata":{"finalizers":["example.com/wait"]}}`, "web"},
		{"to unsuspend it", `{"spec":{"suspend":false}}`, "web"},
		{"to take suspend away", `{"spec":{"suspend":null}}`, "web"},
		{"to change the schedule", `{"spec":{"schedule":"* * * * *"}}`, "web"},
		{"to change any of the spec", `{"spec":{"precondition":"None"}}`, "web"},
		{"to restart it now", `{"metadata":{"annotations":{"tidekeeper.dev/restart-now":"2026-01-01T00:00:00Z"}}}`, "web"},
		{"to have the opt-in take its annotations for new", `{"metadata":{"annotations":{"tidekeeper.dev/opt-in-applied":"{}"}}}`, "web"},
		{"to take the opt-in's record away", `{"metadata":{"annotations":null}}`, "web"},
		{"to hide it among other changes", `{"metadata":{"labels":{"a":"b"}},"spec":{"suspend":false}}`, "web"},
	} {
		t.Run("alice may not edit one/"+tt.name, func(t *testing.T) {
			mustRefuse(t, alice.Patch(t.Context(), o.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(tt.patch))), "deployments", tt.target)
		})
		t.Run("bob may/"+tt.name, func(t *testing.T) {
			if err := bob.Patch(t.Context(), o.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(tt.patch)), client.DryRunAll); err != nil {
				t.Error(err)
			}
		})
	}
	t.Run("alice may not by an apply", func(t *testing.T) {
		mustRefuse(t, alice.Patch(t.Context(), o.DeepCopy(), client.RawPatch(types.ApplyYAMLPatchType, []byte(
			`{apiVersion: tidekeeper.dev/v1, kind: ScheduledRestart, metadata: {name: policy-web}, spec: {suspend: false}}`,
		)), client.ForceOwnership, client.FieldOwner("alice")), "deployments", "web")
	})
	t.Run("alice may not by an apply of an owner", func(t *testing.T) {
		mustRefuse(t, alice.Patch(t.Context(), o.DeepCopy(), client.RawPatch(types.ApplyYAMLPatchType, []byte(
			`{apiVersion: tidekeeper.dev/v1, kind: ScheduledRestart, metadata: {name: policy-web, ownerReferences: [{apiVersion: v1, kind: Pod, name: x, uid: no-such}]}}`,
		)), client.ForceOwnership, client.FieldOwner("alice")), "deployments", "web")
	})
	t.Run("alice may not by an update", func(t *testing.T) {
		changed := o.DeepCopy()
		changed.Spec.Suspend = false
		mustRefuse(t, alice.Update(t.Context(), changed), "deployments", "web")
	})
	t.Run("alice may not by the status", func(t *testing.T) {
		for _, patch := range []string{
			// A next tick in the past would be due immediately. Without lastRequestTime, the last
			// request would be repeated.
			`{"status":{"observedGeneration":1,"nextScheduleTime":"2026-01-01T00:00:00Z"}}`,
			`{"status":{"lastRequestTime":null,"observedGeneration":7}}`,
		} {
			mustRefuse(t, alice.Status().Patch(t.Context(), o.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(patch))), "deployments", "web")
		}
		// A status write does not change other fields.
		changed := o.DeepCopy()
		if err := alice.Status().Patch(t.Context(), changed, client.RawPatch(types.MergePatchType, []byte(
			`{"metadata":{"annotations":{"tidekeeper.dev/restart-now":"2026-01-01T00:00:00Z"},"finalizers":["example.com/wait"],
			"ownerReferences":[{"apiVersion":"v1","kind":"Pod","name":"x","uid":"no-such"}]},"spec":{"suspend":false}}`,
		))); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(diff(o.Spec, changed.Spec), diff(o.Annotations, changed.Annotations),
			diff(o.Finalizers, changed.Finalizers), diff(o.OwnerReferences, changed.OwnerReferences)); err != nil {
			t.Errorf("it was changed: %v", err)
		}
	})
	t.Run("alice may not delete it", func(t *testing.T) {
		mustRefuse(t, alice.Delete(t.Context(), o.DeepCopy()), "deployments", "web")
		mustRefuse(t, alice.DeleteAllOf(t.Context(), &tidekeeperv1.ScheduledRestart{}, client.InNamespace(o.Namespace),
			client.MatchingFields{"metadata.name": o.Name}), "deployments", "web")
		if err := bob.Delete(t.Context(), o.DeepCopy(), client.DryRunAll); err != nil {
			t.Errorf("bob may: %v", err)
		}
	})
	t.Run("alice may do what restarts nothing", func(t *testing.T) {
		for _, patch := range []string{
			`{"metadata":{"labels":{"a":"b"}}}`,
			`{"metadata":{"annotations":{"example.com/note":"x"}}}`,
		} {
			if err := alice.Patch(t.Context(), o.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
				t.Errorf("%s: %v", patch, err)
			}
		}
	})
}

// TestPolicyAsksForThatVeryTarget checks that the right to patch one workload allows restarting
// this workload only.
func TestPolicyAsksForThatVeryTarget(t *testing.T) {
	dave := user(t, "dave", bindRole("dave", "tidekeeper-scheduledrestart-edit"),
		allow("dave", withNames(rule("apps", "deployments", "patch"), "policy-one")))
	framework.Eventually(t, "dave may have his own restarted", func() error {
		return dave.Create(t.Context(), restartFor("Deployment", "policy-dave", "policy-one"), client.DryRunAll)
	})
	for _, tt := range []struct{ kind, name string }{{"Deployment", "policy-two"}, {"StatefulSet", "policy-one"}} {
		if err := dave.Create(t.Context(), restartFor(tt.kind, "policy-dave", tt.name)); !apierrors.IsForbidden(err) {
			t.Errorf("%s %s: got %v, want a refusal", tt.kind, tt.name, err)
		}
	}
	o := restartFor("Deployment", "policy-dave", "policy-one")
	if err := dave.Create(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cluster.Delete(t, o) })
	o.Spec.TargetRef.Name = "policy-two"
	if err := dave.Update(t.Context(), o.DeepCopy()); !apierrors.IsForbidden(err) {
		t.Errorf("to point it elsewhere: got %v, want a refusal", err)
	}
	// The user may not change a ScheduledRestart's target either. If an opt-in had created the
	// ScheduledRestart, the opt-in would create another one, which is not suspended.
	other := restartFor("Deployment", "policy-two", "policy-two")
	cluster.Apply(t, other)
	other.Spec.TargetRef.Name = "policy-one"
	if err := dave.Update(t.Context(), other); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "deployments.apps policy-two") {
		t.Errorf("to point another at his own: got %v, want a refusal", err)
	}
}

// TestPolicyKeepsAnOptInSuspended checks that an opt-in's manually suspended schedule stays
// suspended, regardless of the requests of users who may write ScheduledRestarts and delete pods,
// but not patch the workload. They must not be able to make the opt-in recreate the
// ScheduledRestart.
func TestPolicyKeepsAnOptInSuspended(t *testing.T) {
	cluster.StartManager(t)
	alice := user(t, "alice", bindRole("alice", "tidekeeper-scheduledrestart-edit"))
	w := optInWorkload("Deployment", "policy-suspended", optInKey, "true", scheduleKey, "0 3 * * *")
	cluster.Apply(t, w)
	o := eventuallyOptIn(t, w.GetName(), wanted{Schedule: "0 3 * * *"})
	cluster.Change(t, o, func() { o.Spec.Suspend, o.Spec.FailureLimit = true, 7 })
	framework.Eventually(t, "alice has her rights, and the policy is in force", func() error {
		if err := alice.Delete(t.Context(), o.DeepCopy(), client.DryRunAll); err == nil || !strings.Contains(err.Error(), "alice may not patch deployments.apps") {
			return fmt.Errorf("got %w", err)
		}
		return nil
	})
	patch := func(text string) error {
		return alice.Patch(t.Context(), o.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(text)))
	}
	for name, err := range map[string]error{
		"delete":           alice.Delete(t.Context(), o.DeepCopy()),
		"deletecollection": alice.DeleteAllOf(t.Context(), &tidekeeperv1.ScheduledRestart{}, client.InNamespace(o.Namespace), client.MatchingFields{"metadata.name": o.Name}),
		"a forged owner":   patch(fmt.Sprintf(`{"metadata":{"ownerReferences":[{"apiVersion":"apps/v1","kind":"Deployment","name":%q,"uid":"no-such","controller":true}]}}`, w.GetName())),
		"no owner":         patch(`{"metadata":{"ownerReferences":null}}`),
		"another target":   patch(`{"spec":{"targetRef":{"name":"another"}}}`),
		"no record":        patch(`{"metadata":{"annotations":{"tidekeeper.dev/opt-in-applied":null}}}`),
	} {
		if !apierrors.IsForbidden(err) {
			t.Errorf("%s: got %v, want a refusal", name, err)
		}
	}
	settled(t)
	after := eventuallyOptIn(t, w.GetName(), wanted{Schedule: "0 3 * * *", Suspend: true})
	if after.UID != o.UID || after.Spec.FailureLimit != 7 {
		t.Errorf("it was created again: %+v", after.ObjectMeta)
	}
}

// TestPolicyLetsANamespaceGo checks that the control plane may delete the ScheduledRestarts in a
// namespace that an authorized user has deleted.
func TestPolicyLetsANamespaceGo(t *testing.T) {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "policy-goes"}}
	cluster.Apply(t, namespace)
	o := restartFor("Deployment", "web", "web")
	o.Namespace = namespace.Name
	cluster.Apply(t, o)
	cluster.Delete(t, namespace)
	eventuallyGone(t, o)
}

// TestPolicyLetsAnOptInThrough checks that an opt-in by annotation needs only the right to edit the
// workload.
func TestPolicyLetsAnOptInThrough(t *testing.T) {
	cluster.StartManager(t)
	carol := user(t, "carol", allow("carol", rule("apps", "deployments", "get", "patch")))
	w := optInWorkload("Deployment", "policy-optin")
	cluster.Apply(t, w)
	framework.Eventually(t, "carol may annotate", func() error {
		return carol.Patch(t.Context(), w, client.RawPatch(types.MergePatchType, []byte(
			`{"metadata":{"annotations":{"tidekeeper.dev/scheduled-restart":"true","tidekeeper.dev/restart-schedule":"0 3 * * *"}}}`)))
	})
	o := eventuallyOptIn(t, w.GetName(), wanted{Schedule: "0 3 * * *"})
	if err := carol.Create(t.Context(), restartFor("Deployment", "policy-carol", "web")); !apierrors.IsForbidden(err) {
		t.Errorf("carol creates one directly: got %v, want a refusal", err)
	}
	annotate(t, w, optInKey, "")
	eventuallyGone(t, o)
}

// TestPolicyRoles checks that the view role allows only reading.
func TestPolicyRoles(t *testing.T) {
	eve := user(t, "eve", bindRole("eve", "view"))
	list := &tidekeeperv1.ScheduledRestartList{}
	framework.Eventually(t, "a user with the role view can read them", func() error {
		return eve.List(t.Context(), list, client.InNamespace(metav1.NamespaceDefault))
	})
	if err := eve.Create(t.Context(), restartFor("Deployment", "policy-eve", "web")); !apierrors.IsForbidden(err) {
		t.Errorf("a user with the role view creates one: got %v, want a refusal", err)
	}
}

// restartFor returns a ScheduledRestart for a workload, which may be missing.
func restartFor(kind, name, target string) *tidekeeperv1.ScheduledRestart {
	return &tidekeeperv1.ScheduledRestart{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: metav1.NamespaceDefault},
		Spec:       tidekeeperv1.ScheduledRestartSpec{TargetRef: tidekeeperv1.TargetRef{Kind: kind, Name: target}, Schedule: "0 3 * * *"},
	}
}

// user returns a client that impersonates a user with the given rights in the namespace default.
func user(t *testing.T, name string, rights ...[]client.Object) client.Client {
	t.Helper()
	for _, o := range slices.Concat(rights...) {
		cluster.Apply(t, o)
	}
	config, err := clientcmd.RESTConfigFromKubeConfig([]byte(cluster.Sandbox(t, "kubeconfig", "--user", name)))
	if err != nil {
		t.Fatal(err)
	}
	config.QPS = -1
	c, err := client.New(config, client.Options{Scheme: cluster.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// bindRole returns a RoleBinding that grants a ClusterRole to a user in the namespace default.
func bindRole(user, role string) []client.Object {
	return []client.Object{binding(user, rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role}, user+"-"+role)}
}

// allow returns a Role with the given rules in the namespace default, and its binding to a user.
func allow(user string, rules ...rbacv1.PolicyRule) []client.Object {
	return []client.Object{
		&rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: user, Namespace: metav1.NamespaceDefault}, Rules: rules},
		binding(user, rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: user}, user),
	}
}

func binding(user string, role rbacv1.RoleRef, name string) *rbacv1.RoleBinding {
	return &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: metav1.NamespaceDefault},
		RoleRef:    role,
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	}
}

func rule(group, resource string, verbs ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, Verbs: verbs}
}

func withNames(r rbacv1.PolicyRule, names ...string) rbacv1.PolicyRule {
	r.ResourceNames = names
	return r
}
