// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/test/framework"
)

const (
	noNodes = "may not patch nodes, and so may not decide what node pools put on them"
	noClass = "may not %s runtimeclasses.node.k8s.io node-pool-%s, and so may not decide about a node pool with a handler"
)

// TestNodePoolPolicyAsksForTheRightToPatchNodes checks that users who may write NodePools but not
// patch nodes cannot use any write of a NodePool to label or taint nodes, or to prevent the removal
// of settings.
func TestNodePoolPolicyAsksForTheRightToPatchNodes(t *testing.T) {
	// No manager runs because only the admission policies are tested.
	writes := []rbacv1.PolicyRule{rule("tidekeeper.dev", "nodepools/status", "update", "patch")}
	bob := user(t, "pool-bob", bindInCluster("pool-bob", "tidekeeper-nodepool-edit"), bindInCluster("pool-bob", "admin"), allowInCluster("pool-bob", writes...))
	carl := user(t, "pool-carl", bindInCluster("pool-carl", "tidekeeper-nodepool-edit"), allowInCluster("pool-carl", append(writes, rule("", "nodes", "patch"))...))
	refused := func(t *testing.T, err error) {
		t.Helper()
		if !apierrors.IsForbidden(err) || !strings.HasSuffix(err.Error(), "pool-bob "+noNodes) {
			t.Errorf("got %v, want %q", err, noNodes)
		}
	}
	framework.Eventually(t, "bob may write NodePools, and the policy is in force", func() error {
		if err := bob.Create(t.Context(), pool("policy-wait"), client.DryRunAll); err == nil || !strings.HasSuffix(err.Error(), noNodes) {
			return fmt.Errorf("got %w", err)
		}
		return nil
	})
	framework.Eventually(t, "carl has his rights", func() error { return carl.Create(t.Context(), pool("policy-wait"), client.DryRunAll) })

	p := pool("policy-pool")
	p.Labels = map[string]string{"policy": "pool"}
	cluster.Apply(t, p)
	requests := map[string]func(c client.Client, o *tidekeeperv1.NodePool) error{
		"create": func(c client.Client, _ *tidekeeperv1.NodePool) error {
			return c.Create(t.Context(), pool("policy-new"), client.DryRunAll)
		},
		"create by an apply": func(c client.Client, _ *tidekeeperv1.NodePool) error {
			return c.Patch(t.Context(), pool("policy-new"), client.RawPatch(types.ApplyYAMLPatchType, []byte(
				`{apiVersion: tidekeeper.dev/v1, kind: NodePool, metadata: {name: policy-new}, spec: {labels: {example.com/a: b}}}`,
			)), client.FieldOwner("x"), client.DryRunAll)
		},
		"apply": func(c client.Client, o *tidekeeperv1.NodePool) error {
			return c.Patch(t.Context(), o, client.RawPatch(types.ApplyYAMLPatchType, []byte(
				`{apiVersion: tidekeeper.dev/v1, kind: NodePool, metadata: {name: policy-pool}, spec: {labels: {example.com/a: b}}}`,
			)), client.ForceOwnership, client.FieldOwner("x"), client.DryRunAll)
		},
		"update": func(c client.Client, o *tidekeeperv1.NodePool) error {
			o.Spec.Taints[0].Effect = "NoExecute"
			return c.Update(t.Context(), o, client.DryRunAll)
		},
		"delete": func(c client.Client, o *tidekeeperv1.NodePool) error {
			return c.Delete(t.Context(), o, client.DryRunAll)
		},
		"deletecollection": func(c client.Client, o *tidekeeperv1.NodePool) error {
			return c.DeleteAllOf(t.Context(), o, client.MatchingLabels(p.Labels), client.DryRunAll)
		},
		"status": func(c client.Client, o *tidekeeperv1.NodePool) error {
			return c.Status().Patch(t.Context(), o, client.RawPatch(types.MergePatchType, []byte(
				`{"status":{"managed":{"labels":["team.example.com/somebody-elses"]}}}`)), client.DryRunAll)
		},
	}
	for name, patch := range map[string]string{
		"a label":        `{"spec":{"labels":{"example.com/a":"b"}}}`,
		"a taint":        `{"spec":{"taints":[{"key":"example.com/x","effect":"NoExecute"}]}}`,
		"no taint":       `{"spec":{"taints":null}}`,
		"the selector":   `{"spec":{"selector":{"matchLabels":{"example.com/a":"b"}}}}`,
		"a finalizer":    `{"metadata":{"finalizers":["example.com/wait"]}}`,
		"an owner":       `{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"Namespace","name":"none","uid":"no-such"}]}}`,
		"hidden by more": `{"metadata":{"labels":{"a":"b"}},"spec":{"labels":null}}`,
	} {
		requests["patch of "+name] = func(c client.Client, o *tidekeeperv1.NodePool) error {
			return c.Patch(t.Context(), o, client.RawPatch(types.MergePatchType, []byte(patch)), client.DryRunAll)
		}
	}
	for name, request := range requests {
		t.Run(name, func(t *testing.T) {
			refused(t, request(bob, p.DeepCopy()))
			if err := request(carl, p.DeepCopy()); err != nil {
				t.Errorf("user with the right to patch nodes: %v", err)
			}
		})
	}
	t.Run("what changes no node", func(t *testing.T) {
		for _, patch := range []string{`{"metadata":{"labels":{"a":"b"}}}`, `{"metadata":{"annotations":{"example.com/note":"x"}}}`} {
			if err := bob.Patch(t.Context(), p.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(patch)), client.DryRunAll); err != nil {
				t.Errorf("%s: %v", patch, err)
			}
		}
	})
	t.Run("a finalizer taken off", func(t *testing.T) {
		cluster.Change(t, p, func() { p.Finalizers = []string{"example.com/wait"} })
		refused(t, bob.Patch(t.Context(), p.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`)), client.DryRunAll))
		cluster.Change(t, p, func() { p.Finalizers = nil })
	})
}

// TestNodePoolPolicyAsksForTheRightsOnTheRuntimeClass checks that writing a pool with a handler
// requires the user's rights on the RuntimeClass that the pool creates, and on no other.
func TestNodePoolPolicyAsksForTheRightsOnTheRuntimeClass(t *testing.T) {
	nodes := rule("", "nodes", "patch")
	carl := user(t, "class-carl", bindInCluster("class-carl", "tidekeeper-nodepool-edit"), allowInCluster("class-carl", nodes, rule("node.k8s.io", "runtimeclasses", "create")))
	dora := user(t, "class-dora", bindInCluster("class-dora", "tidekeeper-nodepool-edit"), allowInCluster("class-dora", nodes,
		rule("node.k8s.io", "runtimeclasses", "create"), withNames(rule("node.k8s.io", "runtimeclasses", "patch", "delete"), "node-pool-policy-class", "node-pool-policy-plain")))
	refused := func(t *testing.T, err error, verbs, name string) {
		t.Helper()
		if want := "class-carl " + fmt.Sprintf(noClass, verbs, name); !apierrors.IsForbidden(err) || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	with := pool("policy-class")
	with.Spec.Handler = "runc"
	framework.Eventually(t, "dora has her rights", func() error { return dora.Create(t.Context(), with.DeepCopy(), client.DryRunAll) })
	framework.Eventually(t, "carl may without a handler", func() error { return carl.Create(t.Context(), pool("policy-plain"), client.DryRunAll) })
	refused(t, carl.Create(t.Context(), with.DeepCopy(), client.DryRunAll), "patch", "policy-class")

	cluster.Apply(t, with)
	plain := pool("policy-plain")
	cluster.Apply(t, plain)
	for _, tt := range []struct {
		name    string
		request func(c client.Client) error
		of      string
	}{
		{"a handler for a pool without", func(c client.Client) error {
			return c.Patch(t.Context(), plain.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(`{"spec":{"handler":"kata"}}`)), client.DryRunAll)
		}, "policy-plain"},
		{"handler removed", func(c client.Client) error {
			return c.Patch(t.Context(), with.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(`{"spec":{"handler":null}}`)), client.DryRunAll)
		}, "policy-class"},
		{"the pool deleted", func(c client.Client) error { return c.Delete(t.Context(), with.DeepCopy(), client.DryRunAll) }, "policy-class"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			refused(t, tt.request(carl), "patch", tt.of)
			if err := tt.request(dora); err != nil {
				t.Errorf("user with the rights: %v", err)
			}
		})
	}
	if err := carl.Delete(t.Context(), plain.DeepCopy(), client.DryRunAll); err != nil {
		t.Errorf("user with the right to patch nodes deletes a pool without a handler: %v", err)
	}
}

// TestNodePoolPolicyLetsTheCleanUpDelete checks that the job that cleans up before an uninstall may
// delete pools, and do nothing else.
func TestNodePoolPolicyLetsTheCleanUpDelete(t *testing.T) {
	job := user(t, "policy-job", allowInCluster("policy-job", rule("tidekeeper.dev", "nodepools", "list", "delete", "patch", "clean-up")))
	p := pool("policy-clean-up")
	p.Spec.Handler = "runc"
	cluster.Apply(t, p)
	framework.Eventually(t, "it may delete the pool", func() error { return job.Delete(t.Context(), p.DeepCopy(), client.DryRunAll) })
	framework.Eventually(t, "the policy is in force, and refuses it to edit the pool", func() error {
		err := job.Patch(t.Context(), p.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(`{"spec":{"taints":null}}`)), client.DryRunAll)
		if !apierrors.IsForbidden(err) || !strings.HasSuffix(err.Error(), noNodes) {
			return fmt.Errorf("got %w", err)
		}
		return nil
	})
}

// TestNodePoolPolicyLetsTheManagerWork checks that the manager's own rights suffice from a pool's
// creation to its deletion, and that the garbage collector may delete the objects that a pool owns.
func TestNodePoolPolicyLetsTheManagerWork(t *testing.T) {
	cluster.StartManager(t)
	p := pool("policy-life")
	p.Spec.Handler = "runc"
	cluster.Apply(t, p)
	node := addMembers(t, "policy-life", 1)[0]
	healthyWith(t, "policy-life", 1)
	if err := cluster.Client.Delete(t.Context(), p, client.PropagationPolicy(metav1.DeletePropagationForeground)); err != nil {
		t.Fatal(err)
	}
	eventuallyGone(t, p)
	if err := diff(clean, shapeOf(t, node)); err != nil {
		t.Errorf("its node has %v", err)
	}
}

// bindInCluster returns a ClusterRoleBinding that grants a ClusterRole to a user.
func bindInCluster(user, role string) []client.Object {
	return []client.Object{clusterBinding(user, role, user+"-"+role)}
}

// allowInCluster returns a ClusterRole with the given rules and its binding to a user.
func allowInCluster(user string, rules ...rbacv1.PolicyRule) []client.Object {
	return []client.Object{
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: user}, Rules: rules},
		clusterBinding(user, user, user),
	}
}

func clusterBinding(user, role, name string) *rbacv1.ClusterRoleBinding {
	return &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	}
}
