// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"pgregory.net/rapid"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/nodepool/plan"
	"tidekeeper.dev/tidekeeper/internal/nodepool/test/objects"
)

func TestNodeSelector(t *testing.T) {
	const in, notIn = metav1.LabelSelectorOpIn, metav1.LabelSelectorOpNotIn
	const exists, absent = metav1.LabelSelectorOpExists, metav1.LabelSelectorOpDoesNotExist

	for _, tc := range []struct {
		name string
		pool *objects.PoolBuilder
		// yes lists nodes that must be members; no lists nodes that must not be members.
		yes, no []*objects.NodeBuilder
	}{
		{
			name: "without a selector, the role label with any value selects",
			pool: objects.Pool("worker"),
			yes:  []*objects.NodeBuilder{objects.Node("empty").Role("worker"), objects.Node("valued").Label("node-role.kubernetes.io/worker", "true")},
			no: []*objects.NodeBuilder{objects.Node("bare"), objects.Node("other").Role("worker2"),
				objects.Node("plain").Label("worker", ""), objects.Node("shorter").Role("work")},
		},
		{
			name: "with a selector, the role label does not matter",
			pool: objects.Pool("worker").MatchLabels("disk", "ssd"),
			yes:  []*objects.NodeBuilder{objects.Node("ssd").Label("disk", "ssd")},
			no:   []*objects.NodeBuilder{objects.Node("role").Role("worker"), objects.Node("hdd").Label("disk", "hdd").Role("worker")},
		},
		{
			name: "all of matchLabels must hold",
			pool: objects.Pool("worker").MatchLabels("disk", "ssd", "zone", "1"),
			yes:  []*objects.NodeBuilder{objects.Node("both").Label("disk", "ssd").Label("zone", "1")},
			no:   []*objects.NodeBuilder{objects.Node("one").Label("disk", "ssd"), objects.Node("zone").Label("disk", "ssd").Label("zone", "2")},
		},
		{
			name: "an empty value in matchLabels matches only the empty value",
			pool: objects.Pool("worker").MatchLabels("disk", ""),
			yes:  []*objects.NodeBuilder{objects.Node("empty").Label("disk", "")},
			no:   []*objects.NodeBuilder{objects.Node("bare"), objects.Node("ssd").Label("disk", "ssd")},
		},
		{
			name: "In: the label has one of the values",
			pool: objects.Pool("worker").MatchExpression("zone", in, "1", "2"),
			yes:  []*objects.NodeBuilder{objects.Node("1").Label("zone", "1"), objects.Node("2").Label("zone", "2")},
			no:   []*objects.NodeBuilder{objects.Node("3").Label("zone", "3"), objects.Node("bare"), objects.Node("empty").Label("zone", "")},
		},
		{
			name: "NotIn: the label has none of the values, or is absent",
			pool: objects.Pool("worker").MatchExpression("zone", notIn, "1", "2"),
			yes:  []*objects.NodeBuilder{objects.Node("3").Label("zone", "3"), objects.Node("bare"), objects.Node("empty").Label("zone", "")},
			no:   []*objects.NodeBuilder{objects.Node("1").Label("zone", "1"), objects.Node("2").Label("zone", "2")},
		},
		{
			name: "Exists: the label is there, even with an empty value",
			pool: objects.Pool("worker").MatchExpression("zone", exists),
			yes:  []*objects.NodeBuilder{objects.Node("1").Label("zone", "1"), objects.Node("empty").Label("zone", "")},
			no:   []*objects.NodeBuilder{objects.Node("bare")},
		},
		{
			name: "DoesNotExist: the label is absent",
			pool: objects.Pool("worker").MatchExpression("zone", absent),
			yes:  []*objects.NodeBuilder{objects.Node("bare"), objects.Node("other").Label("zones", "1")},
			no:   []*objects.NodeBuilder{objects.Node("1").Label("zone", "1"), objects.Node("empty").Label("zone", "")},
		},
		{
			name: "matchLabels and all of matchExpressions must hold together",
			pool: objects.Pool("worker").MatchLabels("disk", "ssd").MatchExpression("zone", exists).MatchExpression("drain", absent),
			yes:  []*objects.NodeBuilder{objects.Node("all").Label("disk", "ssd").Label("zone", "1")},
			no: []*objects.NodeBuilder{objects.Node("no zone").Label("disk", "ssd"), objects.Node("no disk").Label("zone", "1"),
				objects.Node("drain").Label("disk", "ssd").Label("zone", "1").Label("drain", "")},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			selector, err := plan.Selector(tc.pool.Obj())
			if err != nil {
				t.Fatalf("Selector: %v", err)
			}
			for _, node := range tc.yes {
				if !selector.Matches(labels.Set(node.Obj().Labels)) {
					t.Errorf("selector %q does not match node %q with %v", selector, node.Obj().Name, node.Obj().Labels)
				}
			}
			for _, node := range tc.no {
				if selector.Matches(labels.Set(node.Obj().Labels)) {
					t.Errorf("selector %q matches node %q with %v", selector, node.Obj().Name, node.Obj().Labels)
				}
			}
		})
	}
}

// TestNodeSelectorRefuses checks that a pool with a selector that the current schema rejects
// selects no nodes, and that the error states the reason.
func TestNodeSelectorRefuses(t *testing.T) {
	for _, tc := range []struct {
		name string
		pool *objects.PoolBuilder
		want string // substring expected in the error
	}{
		{"an empty selector", objects.Pool("worker").MatchLabels(), "would take every node"},
		{"an unknown operator", objects.Pool("worker").MatchExpression("zone", "Near", "1"), "spec.selector"},
		{"In without values", objects.Pool("worker").MatchExpression("zone", metav1.LabelSelectorOpIn), "spec.selector"},
		{"Exists with values", objects.Pool("worker").MatchExpression("zone", metav1.LabelSelectorOpExists, "1"), "spec.selector"},
		{"an invalid label key", objects.Pool("worker").MatchLabels("no key", "1"), "spec.selector"},
		{"an invalid label value", objects.Pool("worker").MatchLabels("zone", "no value"), "spec.selector"},
		{"a name too long for a role label", objects.Pool(strings.Repeat("x", 64)), "cannot be part of a role label"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			selector, err := plan.Selector(tc.pool.Obj())
			if err == nil || selector != nil {
				t.Fatalf("Selector = %v, %v; want no selector and an error", selector, err)
			}
			if !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %q does not say %q", err, tc.want)
			}
		})
	}
}

func TestBySeniority(t *testing.T) {
	for _, tc := range []struct {
		name  string
		pools []*objects.PoolBuilder
		want  []string
	}{
		{"the older comes first", []*objects.PoolBuilder{objects.Pool("a").CreatedAt(2), objects.Pool("b").CreatedAt(1)}, []string{"b", "a"}},
		{"of equally old pools the first by name", []*objects.PoolBuilder{objects.Pool("b").CreatedAt(1), objects.Pool("a").CreatedAt(1)}, []string{"a", "b"}},
		{"age counts before name", []*objects.PoolBuilder{objects.Pool("c").CreatedAt(1), objects.Pool("a").CreatedAt(3), objects.Pool("b").CreatedAt(1)}, []string{"b", "c", "a"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, namesBySeniority(tc.pools)); diff != "" {
				t.Errorf("order (-want +got):\n%s", diff)
			}
		})
	}
}

// TestBySeniorityIsTotal checks that the order of precedence is total, so that two managers agree
// on it regardless of the order in which they list the pools.
func TestBySeniorityIsTotal(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pools := []*objects.PoolBuilder{}
		for _, name := range rapid.Permutation([]string{"a", "b", "c", "d", "e"}).Draw(t, "names") {
			pools = append(pools, objects.Pool(name).CreatedAt(rapid.IntRange(0, 2).Draw(t, "age")))
		}
		one := namesBySeniority(pools)
		other := namesBySeniority(rapid.Permutation(pools).Draw(t, "order"))
		if diff := cmp.Diff(one, other); diff != "" {
			t.Fatalf("two orders of the same pools (-one +other):\n%s", diff)
		}
	})
}

func namesBySeniority(makers []*objects.PoolBuilder) []string {
	pools := []*tidekeeperv1.NodePool{}
	for _, m := range makers {
		pools = append(pools, m.Obj())
	}
	slices.SortFunc(pools, plan.ByPrecedence)
	names := []string{}
	for _, p := range pools {
		names = append(names, p.Name)
	}
	return names
}
