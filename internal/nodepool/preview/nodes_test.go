// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/nodepool/setting"
	"tidekeeper.dev/tidekeeper/internal/nodepool/test/objects"
)

// previewText formats previews as lines that test tables can compare.
func previewText(previews []Node) []string {
	var lines []string
	add := func(format string, args ...any) {
		lines = append(lines, strings.TrimSpace(fmt.Sprintf(format, args...)))
	}
	for _, p := range previews {
		for _, pool := range p.Joins {
			add("%s joins %s", p.Name, pool)
		}
		for _, pool := range p.Leaves {
			add("%s leaves %s", p.Name, pool)
		}
		for _, c := range p.Changes {
			external := ""
			if c.External {
				external = " external"
			}
			add("%s %s %s %s %q->%q %s%s", p.Name, c.Action, c.Kind, c.Key, c.From, c.To, c.Pool, external)
		}
		for _, c := range p.ConflictsBegin {
			add("%s begins: %s wants %s %s of %s", p.Name, c.Pool, c.Kind, c.Key, c.Owner)
		}
		for _, c := range p.ConflictsEnd {
			add("%s ends: %s wants %s %s of %s", p.Name, c.Pool, c.Kind, c.Key, c.Owner)
		}
		if p.NeverSettles {
			add("%s never settles", p.Name)
		}
	}
	return lines
}

func TestPreviewNodes(t *testing.T) {
	type pools = []*tidekeeperv1.NodePool
	worker := func() *objects.PoolBuilder { return objects.Pool("worker").CreatedAt(1).Labels("tier", "silver") }
	younger := func() *objects.PoolBuilder {
		return objects.Pool("young").CreatedAt(2).MatchLabels("zone", "a").Labels("tier", "gold")
	}
	for _, tc := range []struct {
		name          string
		before, after pools
		node          *objects.NodeBuilder
		want          []string
	}{
		{"nothing changes", pools{worker().Obj()}, pools{worker().Obj()}, objects.Node("n").Role("worker"), nil},
		{"a change in progress is not a difference", pools{worker().WithoutFinalizer().ManagingNothing().Obj()}, pools{worker().Obj()}, objects.Node("n").Role("worker"), nil},
		{"a pool that does not exist yet", nil, pools{worker().Annotations("a", "b").Taint("t", "", objects.NoSchedule).WithoutFinalizer().ManagingNothing().Obj()}, objects.Node("n").Role("worker"), []string{
			`n joins worker`, `n Add label tier ""->"silver" worker`, `n Add annotation a ""->"b" worker`, `n Add taint t:NoSchedule ""->"" worker`}},
		{"another value", pools{worker().Obj()}, pools{worker().Labels("tier", "gold").Obj()}, objects.Node("n").Role("worker").LabelOf("worker", "tier", "silver"), []string{
			`n Change label tier "silver"->"gold" worker`}},
		{"a value that another client had set", nil, pools{worker().Obj()}, objects.Node("n").Role("worker").Label("tier", "gold"), []string{
			`n joins worker`, `n Change label tier "gold"->"silver" worker external`}},
		{"a value that the node already has", nil, pools{worker().Obj()}, objects.Node("n").Role("worker").Label("tier", "silver"), []string{`n joins worker`}},
		{"a key no longer asked for", pools{worker().Obj()}, pools{objects.Pool("worker").Managing(setting.LabelKey("tier")).Obj()},
			objects.Node("n").Role("worker").LabelOf("worker", "tier", "silver"), []string{`n Remove label tier "silver"->""`}},
		{"a pool that is deleted", pools{worker().Obj()}, pools{worker().Deleted().Obj()}, objects.Node("n").Role("worker").LabelOf("worker", "tier", "silver"), []string{
			`n leaves worker`, `n Remove label tier "silver"->""`}},
		{"a selector that matches other nodes", pools{worker().Obj()}, pools{worker().MatchLabels("zone", "a").Obj()},
			objects.Node("n").Role("worker").LabelOf("worker", "tier", "silver"), []string{`n leaves worker`, `n Remove label tier "silver"->""`}},
		{"an older pool has the key", pools{worker().Obj()}, pools{worker().Obj(), younger().Obj()}, objects.Node("n").Role("worker").Label("zone", "a"), []string{
			`n joins young`, `n begins: young wants label tier of worker`}},
		{"the older pool releases it", pools{worker().Obj(), younger().Obj()}, pools{worker().Deleted().Obj(), younger().Obj()},
			objects.Node("n").Role("worker").Label("zone", "a").LabelOf("worker", "tier", "silver"), []string{
				`n leaves worker`, `n Change label tier "silver"->"gold" young`, `n ends: young wants label tier of worker`}},
		{"its label makes the node a member of another pool", pools{younger().Obj()}, pools{younger().Obj(), worker().Labels("zone", "a").Obj()},
			objects.Node("n").Role("worker"), []string{`n joins worker`, `n joins young`, `n Add label tier ""->"silver" worker`, `n Add label zone ""->"a" worker`, `n begins: young wants label tier of worker`}},
		{"a pool that excludes its own members", nil, pools{objects.Pool("in").MatchExpression("x", "DoesNotExist").Labels("x", "1").Obj()},
			objects.Node("n"), []string{`n never settles`}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := previewText(Nodes(tc.before, tc.after, []corev1.Node{*tc.node.Obj()}))
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
