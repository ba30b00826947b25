// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/test/framework"
)

// TestMaintenancePolicyAsksForTheRightsToDrain checks that users who may write NodeMaintenances but may
// not patch nodes, or not evict pods everywhere, cannot use any write to drain or release nodes.
func TestMaintenancePolicyAsksForTheRightsToDrain(t *testing.T) {
	// No manager runs because only the admission policies are tested.
	const suffix = ", and so may not decide which nodes are drained"
	status := rule("tidekeeper.dev", "nodemaintenances/status", "update", "patch")
	nodes, evictions := rule("", "nodes", "patch"), rule("", "pods/eviction", "create")
	named := func(name string, rules ...rbacv1.PolicyRule) client.Client {
		return user(t, name, bindInCluster(name, "tidekeeper-nodemaintenance-edit"), allowInCluster(name, append(rules, status)...))
	}
	all := named("maint-all", nodes, evictions)
	refused := map[string]client.Client{
		"maint-none may not patch nodes":                                  named("maint-none"),
		"maint-evicts may not patch nodes":                                named("maint-evicts", evictions),
		"maint-nodes may not create pods/eviction in all namespaces":      named("maint-nodes", nodes),
		"maint-namespaced may not create pods/eviction in all namespaces": named("maint-namespaced", nodes),
	}
	for _, o := range bindRole("maint-namespaced", "admin") {
		cluster.Apply(t, o)
	}
	m := maintenanceOf("maint-policy", "")
	m.Spec.Suspend = true
	m.Labels = map[string]string{"policy": "maintenance"}
	framework.Eventually(t, "who has the rights may create one", func() error {
		return all.Create(t.Context(), m.DeepCopy(), client.DryRunAll)
	})
	cluster.Apply(t, m)
	requests := map[string]func(c client.Client, o *tidekeeperv1.NodeMaintenance) error{
		"create": func(c client.Client, _ *tidekeeperv1.NodeMaintenance) error {
			return c.Create(t.Context(), maintenanceOf("maint-policy-new", ""), client.DryRunAll)
		},
		"update": func(c client.Client, o *tidekeeperv1.NodeMaintenance) error {
			o.Spec.Suspend = false
			return c.Update(t.Context(), o, client.DryRunAll)
		},
		"delete": func(c client.Client, o *tidekeeperv1.NodeMaintenance) error {
			return c.Delete(t.Context(), o, client.DryRunAll)
		},
		"deletecollection": func(c client.Client, o *tidekeeperv1.NodeMaintenance) error {
			return c.DeleteAllOf(t.Context(), o, client.MatchingLabels(m.Labels), client.DryRunAll)
		},
		"status": func(c client.Client, o *tidekeeperv1.NodeMaintenance) error {
			return c.Status().Patch(t.Context(), o, client.RawPatch(types.MergePatchType, []byte(`{"status":{"done":3}}`)), client.DryRunAll)
		},
	}
	for name, patch := range map[string]string{
		"the nodes":   `{"spec":{"nodes":{"selector":null,"names":["a"]}}}`,
		"a finalizer": `{"metadata":{"finalizers":["example.com/wait"]}}`,
		"an owner":    `{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"Namespace","name":"none","uid":"no-such"}]}}`,
	} {
		requests["patch of "+name] = func(c client.Client, o *tidekeeperv1.NodeMaintenance) error {
			return c.Patch(t.Context(), o, client.RawPatch(types.MergePatchType, []byte(patch)), client.DryRunAll)
		}
	}
	for name, request := range requests {
		t.Run(name, func(t *testing.T) {
			for why, c := range refused {
				framework.Eventually(t, "the policy refuses it: "+why, func() error {
					if err := request(c, m.DeepCopy()); !apierrors.IsForbidden(err) || !strings.HasSuffix(err.Error(), why+suffix) {
						return fmt.Errorf("got %w", err)
					}
					return nil
				})
			}
			if err := request(all, m.DeepCopy()); err != nil {
				t.Errorf("user with both rights: %v", err)
			}
		})
	}
	t.Run("a label", func(t *testing.T) {
		for why, c := range refused {
			if err := c.Patch(t.Context(), m.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"a":"b"}}}`)), client.DryRunAll); err != nil {
				t.Errorf("%s: %v", why, err)
			}
		}
	})
	t.Run("the clean-up before an uninstall", func(t *testing.T) {
		job := user(t, "maint-job", allowInCluster("maint-job", rule("tidekeeper.dev", "nodemaintenances", "list", "delete", "patch", "clean-up")))
		framework.Eventually(t, "it may delete", func() error { return job.Delete(t.Context(), m.DeepCopy(), client.DryRunAll) })
		if err := job.Patch(t.Context(), m.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(`{"spec":{"suspend":false}}`)), client.DryRunAll); !apierrors.IsForbidden(err) || !strings.HasSuffix(err.Error(), suffix) {
			t.Errorf("it edits: got %v, want a refusal", err)
		}
	})
	cluster.Delete(t, m)
}
