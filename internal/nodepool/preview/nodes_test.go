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

// previewText is a preview in lines, for tables.
func previewText(previews []Node) []string {
	var lines []string
	say := func(format string, args ...any) {
		lines = append(lines, strings.TrimSpace(fmt.Sprintf(format, args...)))
	}
	for _, p := range previews {
		for _, pool := range p.Joins {
			say("%s joins %s", p.Name, pool)
		}
		for _, pool := range p.Leaves {
			say("%s leaves %s", p.Name, pool)
		}
		for _, c := range p.Changes {
			foreign := ""
			if c.External {
				foreign = " foreign"
			}
			say("%s %s %s %s %q->%q %s%s", p.Name, c.Action, c.Kind, c.Key, c.From, c.To, c.Pool, foreign)
		}
		for _, c := range p.ConflictsBegin {
			say("%s begins: %s wants %s %s of %s", p.Name, c.Pool, c.Kind, c.Key, c.Owner)
		}
		for _, c := range p.ConflictsEnd {
			say("%s ends: %s wants %s %s of %s", p.Name, c.Pool, c.Kind, c.Key, c.Owner)
		}
		if p.NeverSettles {
			say("%s never rests", p.Name)
		}
	}
	return lines
}

func TestPreviewNodes(t *testing.T) {
	type pools = []*tidekeeperv1.NodePool
	worker := func() *objects.PoolMaker { return objects.Pool("worker").CreatedAt(1).Labels("tier", "silver") }
	younger := func() *objects.PoolMaker {
		return objects.Pool("young").CreatedAt(2).MatchLabels("zone", "a").Labels("tier", "gold")
	}
	for _, tc := range []struct {
		name          string
		before, after pools
		node          *objects.NodeMaker
		want          []string
	}{
		{"nothing changes", pools{worker().Obj()}, pools{worker().Obj()}, objects.Node("n").Role("worker"), nil},
		{"what is under way is no change", pools{worker().WithoutFinalizer().ManagingNothing().Obj()}, pools{worker().Obj()}, objects.Node("n").Role("worker"), nil},
		{"a pool that is not there yet", nil, pools{worker().Annotations("a", "b").Taint("t", "", objects.NoSchedule).WithoutFinalizer().ManagingNothing().Obj()}, objects.Node("n").Role("worker"), []string{
			`n joins worker`, `n Add label tier ""->"silver" worker`, `n Add annotation a ""->"b" worker`, `n Add taint t:NoSchedule ""->"" worker`}},
		{"another value", pools{worker().Obj()}, pools{worker().Labels("tier", "gold").Obj()}, objects.Node("n").Role("worker").LabelOf("worker", "tier", "silver"), []string{
			`n Change label tier "silver"->"gold" worker`}},
		{"a value that was somebody's", nil, pools{worker().Obj()}, objects.Node("n").Role("worker").Label("tier", "gold"), []string{
			`n joins worker`, `n Change label tier "gold"->"silver" worker foreign`}},
		{"a value that is right already", nil, pools{worker().Obj()}, objects.Node("n").Role("worker").Label("tier", "silver"), []string{`n joins worker`}},
		{"a key no longer asked for", pools{worker().Obj()}, pools{objects.Pool("worker").Managing(setting.LabelKey("tier")).Obj()},
			objects.Node("n").Role("worker").LabelOf("worker", "tier", "silver"), []string{`n Remove label tier "silver"->""`}},
		{"a pool that is deleted", pools{worker().Obj()}, pools{worker().Deleted().Obj()}, objects.Node("n").Role("worker").LabelOf("worker", "tier", "silver"), []string{
			`n leaves worker`, `n Remove label tier "silver"->""`}},
		{"a selector that takes other nodes", pools{worker().Obj()}, pools{worker().MatchLabels("zone", "a").Obj()},
			objects.Node("n").Role("worker").LabelOf("worker", "tier", "silver"), []string{`n leaves worker`, `n Remove label tier "silver"->""`}},
		{"an older pool has the key", pools{worker().Obj()}, pools{worker().Obj(), younger().Obj()}, objects.Node("n").Role("worker").Label("zone", "a"), []string{
			`n joins young`, `n begins: young wants label tier of worker`}},
		{"the older pool lets go of it", pools{worker().Obj(), younger().Obj()}, pools{worker().Deleted().Obj(), younger().Obj()},
			objects.Node("n").Role("worker").Label("zone", "a").LabelOf("worker", "tier", "silver"), []string{
				`n leaves worker`, `n Change label tier "silver"->"gold" young`, `n ends: young wants label tier of worker`}},
		{"what it puts there makes the node another pool's", pools{younger().Obj()}, pools{younger().Obj(), worker().Labels("zone", "a").Obj()},
			objects.Node("n").Role("worker"), []string{`n joins worker`, `n joins young`, `n Add label tier ""->"silver" worker`, `n Add label zone ""->"a" worker`, `n begins: young wants label tier of worker`}},
		{"a pool that throws out its own members", nil, pools{objects.Pool("in").MatchExpression("x", "DoesNotExist").Labels("x", "1").Obj()},
			objects.Node("n"), []string{`n never rests`}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := previewText(Nodes(tc.before, tc.after, []corev1.Node{*tc.node.Obj()}))
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
