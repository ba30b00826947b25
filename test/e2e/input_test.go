// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"tidekeeper.dev/tidekeeper/test/framework"
)

// TestWrongSpecsAreRefused checks that the API server rejects invalid specs with an error that
// names the mistake and the remedy, and that nothing changes.
func TestWrongSpecsAreRefused(t *testing.T) {
	for _, tt := range []struct {
		name, pool, spec string
		want             string
	}{
		{
			name: "bad taint effect", spec: "taints: [{key: a, effect: NoRun}]",
			want: `spec.taints[0].effect: Unsupported value: "NoRun": supported values: "NoSchedule", "PreferNoSchedule", "NoExecute"`,
		},
		{
			name: "label value too long", spec: "labels: {a: " + strings.Repeat("x", 64) + "}",
			want: "spec.labels.a: Too long: may not be more than 63 bytes",
		},
		{
			name: "label value with a space", spec: "labels: {a: 'b c'}",
			want: "a label value must be at most 63 letters, digits, '-', '_' and '.', beginning and ending with a letter or digit",
		},
		{
			name: "invalid label key", spec: "labels: {'a b': c}",
			want: "a label key must be a qualified name",
		},
		{
			name: "node template without an amount", spec: "nodeTemplate: {allocatable: {cpu: 4, memory: 8Gi}}",
			want: "spec.nodeTemplate.allocatable: Invalid value: allocatable needs cpu, memory and pods",
		},
		{
			name: "node template with a negative amount", spec: "nodeTemplate: {allocatable: {cpu: 4, memory: -8Gi, pods: 110}}",
			want: "spec.nodeTemplate.allocatable: Invalid value: an amount of allocatable must not be negative",
		},
		{
			name: "node template with a negative integer", spec: "nodeTemplate: {allocatable: {cpu: -4, memory: 8Gi, pods: 110}}",
			want: "spec.nodeTemplate.allocatable: Invalid value: an amount of allocatable must not be negative",
		},
		{
			name: "node template with an invalid label key", spec: "nodeTemplate: {allocatable: {cpu: 4, memory: 8Gi, pods: 110}, labels: {'a b': c}}",
			want: "spec.nodeTemplate.labels: Invalid value: a label key must be a qualified name",
		},
		{
			name: "node template with a taint within budgets", spec: "nodeTemplate: {allocatable: {cpu: 4, memory: 8Gi, pods: 110}, taints: [{key: k, effect: NoExecute, eviction: WithinBudgets}]}",
			want: "spec.nodeTemplate.taints: Invalid value: eviction is not for the taints of a nodeTemplate: a new node has no pods",
		},
		{
			name: "guarded label of the kubelet", spec: "labels: {kubernetes.io/hostname: me}",
			want: "a label of the kubelet, the cloud provider or Tidekeeper itself cannot be managed by a pool",
		},
		{
			name: "guarded label of the cloud provider", spec: "labels: {topology.kubernetes.io/zone: z}",
			want: "a label of the kubelet, the cloud provider or Tidekeeper itself cannot be managed by a pool",
		},
		{
			name: "guarded taint", spec: "taints: [{key: node.kubernetes.io/not-ready, effect: NoExecute}]",
			want: "a taint of the node lifecycle controller, the cloud provider or Tidekeeper itself cannot be managed by a pool: node.kubernetes.io/*",
		},
		{
			name: "guarded annotation", spec: "annotations: {tidekeeper.dev/node-pools: '{}'}",
			want: "an annotation of the kubelet, the cloud provider, kubeadm or Tidekeeper itself cannot be managed by a pool",
		},
		{
			name: "duplicate taint", spec: "taints: [{key: a, value: x, effect: NoSchedule}, {key: a, value: y, effect: NoSchedule}]",
			want: "spec.taints[1]: Duplicate value: ", // The format of the duplicate value in the error depends on the Kubernetes release.
		},
		{
			name: "empty selector", spec: "selector: {}",
			want: "an empty selector would take every node: name at least one label, or leave selector out to use the label node-role.kubernetes.io/<name>",
		},
		{
			name: "empty lists in the selector", spec: "selector: {matchLabels: {}, matchExpressions: []}",
			want: "an empty selector would take every node",
		},
		{
			name: "unknown operator", spec: "selector: {matchExpressions: [{key: a, operator: Like, values: [b]}]}",
			want: `spec.selector.matchExpressions[0].operator: Unsupported value: "Like"`,
		},
		{
			name: "In without values", spec: "selector: {matchExpressions: [{key: a, operator: In}]}",
			want: "In and NotIn need values; Exists and DoesNotExist take none",
		},
		{
			name: "its own role label", spec: "labels: {node-role.kubernetes.io/wrong: x}",
			want: "labels must not set the label that makes a node a member of this pool",
		},
		{
			name: "a label with another value than in its selector", spec: "selector: {matchLabels: {a: b}}\n  labels: {a: c}",
			want: "labels must not change a label that the selector asks for: the pool would lose its own nodes",
		},
		{
			name: "a label that its selector has an expression about", spec: "selector: {matchExpressions: [{key: a, operator: Exists}]}\n  labels: {a: c}",
			want: "labels must not set a label that the selector asks for: the pool could lose its own nodes",
		},
		{
			name: "handler with a selector that a RuntimeClass cannot repeat", spec: "selector: {matchExpressions: [{key: a, operator: Exists}]}\n  handler: runc",
			want: "handler needs a selector that a RuntimeClass can repeat: use matchLabels only, or no selector",
		},
		{
			name: "bad handler", spec: "handler: Run_C",
			want: "spec.handler",
		},
		{
			name: "name too long", pool: strings.Repeat("n", 64), spec: "labels: {a: b}",
			want: "the name must be at most 63 characters: it becomes part of the label node-role.kubernetes.io/<name>",
		},
		{
			name: "a field that does not exist", spec: "lables: {a: b}",
			want: `unknown field "spec.lables"`,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			name := "wrong"
			if tt.pool != "" {
				name = tt.pool
			}
			manifest := fmt.Sprintf("apiVersion: tidekeeper.dev/v1\nkind: NodePool\nmetadata: {name: %s}\nspec:\n  %s\n", name, tt.spec)
			out, err := cluster.Kubectl(manifest, "apply", "--validate=strict", "-f", "-")
			if err == nil {
				cluster.Delete(t, framework.Pool(name))
				t.Fatalf("it was accepted: %s", out)
			}
			if !strings.Contains(out, tt.want) {
				t.Errorf("refused with\n%s\nwant it to say\n%s", out, tt.want)
			}
			if err := cluster.Get(t.Context(), client.ObjectKey{Name: name}, framework.Pool(name)); !apierrors.IsNotFound(err) {
				t.Errorf("the pool exists anyway (%v)", err)
			}
		})
	}
}

// TestRightSpecsAreAccepted checks that the API server accepts specs that just satisfy the
// validation rules.
func TestRightSpecsAreAccepted(t *testing.T) {
	for name, spec := range map[string]string{
		"nothing but a name":            "{}",
		"longest label value":           "labels: {a: " + strings.Repeat("x", 63) + "}",
		"empty values":                  "labels: {a: ''}\n  taints: [{key: a, effect: NoSchedule}]",
		"one key with two effects":      "taints: [{key: a, effect: NoSchedule}, {key: a, effect: NoExecute}]",
		"the very label it selects by":  "selector: {matchLabels: {a: b}}\n  labels: {a: b}\n  handler: runc",
		"annotation with any text":      "annotations: {example.com/a: 'Grüße, 世界: {}'}",
		"another pool's role label":     "labels: {node-role.kubernetes.io/other: ''}",
		"every operator of expressions": "selector: {matchExpressions: [{key: a, operator: In, values: [b]}, {key: c, operator: NotIn, values: [d, e]}, {key: f, operator: Exists}, {key: g, operator: DoesNotExist}]}",
	} {
		t.Run(name, func(t *testing.T) {
			manifest := "apiVersion: tidekeeper.dev/v1\nkind: NodePool\nmetadata: {name: right}\nspec:\n  " + spec + "\n"
			if _, err := cluster.Kubectl(manifest, "apply", "--dry-run=server", "--validate=strict", "-f", "-"); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestWrongEditChangesNothing checks that an invalid edit of a pool changes nothing on the pool's
// nodes.
func TestWrongEditChangesNothing(t *testing.T) {
	cluster.StartManager(t)
	addMembers(t, "edit", 1)
	cluster.Apply(t, pool("edit"))
	before := healthyWith(t, "edit", 1)
	out, err := cluster.Kubectl("", "patch", "nodepool", "edit", "--type=merge", "-p", `{"spec":{"labels":{"kubernetes.io/os":"plan9"}}}`)
	if err == nil {
		t.Fatalf("it was accepted: %s", out)
	}
	// The manager may still write the status.
	after := framework.Pool("edit")
	cluster.Refresh(t, after)
	if err := errors.Join(diff(before.Generation, after.Generation), diff(before.Spec, after.Spec)); err != nil {
		t.Errorf("the pool was changed: %v", err)
	}
	if err := diff(shapeFrom("edit"), shapeOf(t, "edit-1")); err != nil {
		t.Errorf("the node was changed: %v", err)
	}
}

// TestSelectorThatSelectsNothing checks that a pool whose selector matches no node reports 0 nodes
// and a condition that names the selector, but no error.
func TestSelectorThatSelectsNothing(t *testing.T) {
	cluster.StartManager(t)
	p := pool("nothing")
	cluster.Apply(t, p)
	got := eventuallyReason(t, "nothing", "NoNodes")
	for _, c := range got.Status.Conditions {
		if c.Type == "Ready" && c.Message != "no node matches the selector node-role.kubernetes.io/nothing" {
			t.Errorf("the condition says %q", c.Message)
		}
	}
	// The printer columns show 0 nodes instead of empty fields.
	if counts := cluster.MustKubectl(t, "", "get", "nodepool", "nothing", "-o", "jsonpath={.status.nodeCount} {.status.readyNodes} {.status.usableNodes}"); counts != "0 0 0" {
		t.Errorf("its numbers of nodes are %q", counts)
	}
}
