// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package nodepool

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
)

const (
	noSchedule       = corev1.TaintEffectNoSchedule
	preferNoSchedule = corev1.TaintEffectPreferNoSchedule
	noExecute        = corev1.TaintEffectNoExecute
)

// planTime is when the plans of these tests are carried out.
var planTime = time.Date(2026, time.March, 29, 1, 30, 0, 0, time.UTC)

// planRow is one row of a table: with these claims, the node becomes want.
type planRow struct {
	name   string
	node   *NodeMaker
	claims []claim

	// want is the node afterwards; nil if it is to stay as it is, with no
	// write at all.
	want *NodeMaker
	// changes in the words of an event: "worker: put label zone".
	changes []string
	// conflicts as "young wants label zone of old".
	conflicts []string
	// unshaped, heldBack and evicts are names of pools. unshaped may be left
	// out if it is just the members among the changes.
	unshaped, heldBack, evicts []string
}

func (row planRow) run(t *testing.T) {
	t.Helper()
	t.Run(row.name, func(t *testing.T) {
		before := row.node.Obj()
		plan := planNode(before, row.claims)
		if diff := cmp.Diff(row.node.Obj(), before); diff != "" {
			t.Fatalf("planning changed the node itself (-before +after):\n%s", diff)
		}

		after := before
		if row.want == nil {
			if !plan.empty() {
				t.Errorf("the node is right as it is, but is written: %s", plan.patch(before, planTime))
			}
		} else {
			if plan.empty() {
				t.Error("the plan is empty")
			}
			after = carryOut(t, &plan, before)
			want := row.want.Obj()
			if diff := cmp.Diff(want, after, cmpopts.EquateEmpty(), ignoreVersion); diff != "" {
				t.Errorf("the node afterwards (-want +got):\n%s", diff)
			}
		}
		if diff := cmp.Diff(row.changes, changesText(plan.changes), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("changes (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(row.conflicts, conflictsText(t, before.Name, plan.conflicts), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("conflicts (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(row.heldBack, plan.heldBack, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("held back (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(row.evicts, plan.evicts, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("evicts (-want +got):\n%s", diff)
		}
		unshaped := row.unshaped
		if unshaped == nil {
			unshaped = changedMembers(row)
		}
		if diff := cmp.Diff(unshaped, plan.unshaped, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("unshaped (-want +got):\n%s", diff)
		}

		again := planNode(after, row.claims)
		if !again.empty() || len(again.changes) > 0 {
			t.Errorf("carried out, the plan is not done: %s", again.patch(after, planTime))
		}
		slices.Reverse(row.claims)
		reversed := planNode(before, row.claims)
		if diff := cmp.Diff(plan, reversed, cmp.AllowUnexported(nodePlan{}, change{}, conflict{}, slot{})); diff != "" {
			t.Errorf("the plan depends on the order of the pools (-one +other):\n%s", diff)
		}
	})
}

// ignoreVersion: carrying a plan out makes a new version of the node.
var ignoreVersion = cmp.FilterPath(func(p cmp.Path) bool { return p.String() == "ObjectMeta.ResourceVersion" }, cmp.Ignore())

// carryOut does to the node what the API server does with the plan's patch.
func carryOut(t interface {
	Helper()
	Fatalf(string, ...any)
}, plan *nodePlan, node *corev1.Node) *corev1.Node {
	t.Helper()
	before, err := json.Marshal(node)
	if err != nil {
		t.Fatalf("marshal node: %v", err)
	}
	patch := plan.patch(node, planTime)
	after, err := jsonpatch.MergePatch(before, patch)
	if err != nil {
		t.Fatalf("apply %s: %v", patch, err)
	}
	patched := &corev1.Node{}
	if err := json.Unmarshal(after, patched); err != nil {
		t.Fatalf("unmarshal node: %v", err)
	}
	if patched.ResourceVersion != node.ResourceVersion {
		t.Fatalf("the patch is for version %q of the node, which was planned at %q", patched.ResourceVersion, node.ResourceVersion)
	}
	patched.ResourceVersion += "0"
	return patched
}

func changesText(changes []change) []string {
	var texts []string
	for _, c := range changes {
		texts = append(texts, fmt.Sprintf("%s: %s %s", c.pool, c.kind, c.slot))
	}
	return texts
}

func conflictsText(t *testing.T, node string, conflicts []conflict) []string {
	t.Helper()
	var texts []string
	for _, c := range conflicts {
		if c.node != node {
			t.Errorf("conflict on node %q, but the plan is for %q", c.node, node)
		}
		texts = append(texts, fmt.Sprintf("%s wants %s of %s", c.pool, c.slot, c.owner))
	}
	return texts
}

func changedMembers(row planRow) []string {
	var names []string
	for _, text := range row.changes {
		name, _, _ := strings.Cut(text, ":")
		if slices.ContainsFunc(row.claims, func(c claim) bool { return c.member && c.pool.Name == name }) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func TestPlanPuts(t *testing.T) {
	for _, row := range []planRow{
		{
			name: "a node that no pool selects is left alone",
			node: MakeNode("a").Label("zone", "9").Taint("gpu", "", noSchedule),
		},
		{
			name:   "a pool that asks for nothing writes nothing",
			node:   MakeNode("a").Role("worker"),
			claims: []claim{MakePool("worker").Member()},
		},
		{
			name:    "a label that the node lacks is put there, with its record",
			node:    MakeNode("a").Role("worker").Label("other", "1"),
			claims:  []claim{MakePool("worker").Labels("zone", "1").Member()},
			want:    MakeNode("a").Role("worker").Label("other", "1").LabelOf("worker", "zone", "1"),
			changes: []string{"worker: put label zone"},
		},
		{
			name:    "an empty value is a value",
			node:    MakeNode("a"),
			claims:  []claim{MakePool("worker").Labels("zone", "").Annotations("note", "").Taint("gpu", "", noSchedule).Member()},
			want:    MakeNode("a").LabelOf("worker", "zone", "").AnnotationOf("worker", "note", "").TaintOf("worker", "gpu", "", noSchedule),
			changes: []string{"worker: put annotation note", "worker: put label zone", "worker: put taint gpu:NoSchedule"},
		},
		{
			name: "labels, annotations and taints go there in one write",
			node: MakeNode("a"),
			claims: []claim{MakePool("worker").Labels("zone", "1", "disk", "ssd").Annotations("note", "<b> \"x\"").
				Taint("dedicated", "worker", noSchedule).Taint("dedicated", "worker", preferNoSchedule).Member()},
			want: MakeNode("a").LabelOf("worker", "zone", "1").LabelOf("worker", "disk", "ssd").AnnotationOf("worker", "note", "<b> \"x\"").
				TaintOf("worker", "dedicated", "worker", noSchedule).TaintOf("worker", "dedicated", "worker", preferNoSchedule),
			changes: []string{"worker: put annotation note", "worker: put label disk", "worker: put label zone",
				"worker: put taint dedicated:NoSchedule", "worker: put taint dedicated:PreferNoSchedule"},
		},
		{
			name: "one key as label, annotation and taint is three things",
			node: MakeNode("a").Label("x", "human"),
			claims: []claim{MakePool("worker").Annotations("x", "1").Taint("x", "2", noSchedule).
				Member()},
			want:    MakeNode("a").Label("x", "human").AnnotationOf("worker", "x", "1").TaintOf("worker", "x", "2", noSchedule),
			changes: []string{"worker: put annotation x", "worker: put taint x:NoSchedule"},
		},
		{
			name:   "what the pool has put there stays as it is",
			node:   MakeNode("a").LabelOf("worker", "zone", "1").AnnotationOf("worker", "note", "x").TaintOf("worker", "gpu", "", noSchedule),
			claims: []claim{MakePool("worker").Labels("zone", "1").Annotations("note", "x").Taint("gpu", "", noSchedule).Member()},
		},
		{
			name:    "another value in the spec is another value on the node",
			node:    MakeNode("a").LabelOf("worker", "zone", "1").AnnotationOf("worker", "note", "x").TaintOf("worker", "gpu", "1", noSchedule),
			claims:  []claim{MakePool("worker").Labels("zone", "2").Annotations("note", "y").Taint("gpu", "2", noSchedule).Member()},
			want:    MakeNode("a").LabelOf("worker", "zone", "2").AnnotationOf("worker", "note", "y").TaintOf("worker", "gpu", "2", noSchedule),
			changes: []string{"worker: updated annotation note", "worker: updated label zone", "worker: updated taint gpu:NoSchedule"},
		},
		{
			name:   "an equal value that was there before is nobody's: it is not recorded",
			node:   MakeNode("a").Label("zone", "1").Annotation("note", "x").Taint("gpu", "", noSchedule),
			claims: []claim{MakePool("worker").Labels("zone", "1").Annotations("note", "x").Taint("gpu", "", noSchedule).Member()},
		},
		{
			name:    "another value that was there before is replaced",
			node:    MakeNode("a").Label("zone", "9").Annotation("note", "z").Taint("gpu", "9", noSchedule),
			claims:  []claim{MakePool("worker").Labels("zone", "1").Annotations("note", "x").Taint("gpu", "1", noSchedule).Member()},
			want:    MakeNode("a").LabelOf("worker", "zone", "1").AnnotationOf("worker", "note", "x").TaintOf("worker", "gpu", "1", noSchedule),
			changes: []string{"worker: replaced annotation note", "worker: replaced label zone", "worker: replaced taint gpu:NoSchedule"},
		},
		{
			name:     "nothing is put there that the status does not name as managed yet",
			node:     MakeNode("a").Label("disk", "hdd"),
			claims:   []claim{MakePool("worker").Labels("zone", "1", "disk", "ssd").Taint("gpu", "", noSchedule).NotVouching().Member()},
			unshaped: []string{"worker"},
		},
		{
			name:     "of several keys those named as managed are put there",
			node:     MakeNode("a"),
			claims:   []claim{MakePool("worker").Labels("zone", "1", "disk", "ssd").NotVouching().Vouching(slot{label, "disk"}, slot{annotation, "zone"}).Member()},
			want:     MakeNode("a").LabelOf("worker", "disk", "ssd"),
			changes:  []string{"worker: put label disk"},
			unshaped: []string{"worker"},
		},
		{
			name:     "nothing is put there before the pool holds its finalizer",
			node:     MakeNode("a").Role("worker"),
			claims:   []claim{MakePool("worker").Labels("zone", "1").NotInForce().Member()},
			unshaped: []string{"worker"},
		},
		{
			name:   "a pool that is being deleted puts nothing there",
			node:   MakeNode("a").Role("worker"),
			claims: []claim{MakePool("worker").Labels("zone", "1").Deleted().Former()},
		},
	} {
		row.run(t)
	}
}

func TestPlanPutsBack(t *testing.T) {
	pool := func() *PoolMaker {
		return MakePool("worker").Labels("zone", "1").Annotations("note", "x").Taint("gpu", "1", noSchedule)
	}
	right := func() *NodeMaker {
		return MakeNode("a").LabelOf("worker", "zone", "1").AnnotationOf("worker", "note", "x").TaintOf("worker", "gpu", "1", noSchedule)
	}
	recorded := func() *NodeMaker {
		return MakeNode("a").Recorded("worker", slot{label, "zone"}, "1").Recorded("worker", slot{annotation, "note"}, "x").
			Recorded("worker", slot{taint, "gpu:NoSchedule"}, "1")
	}
	putBack := []string{"worker: put back annotation note", "worker: put back label zone", "worker: put back taint gpu:NoSchedule"}

	for _, row := range []planRow{
		{
			name:    "what was changed by hand",
			node:    recorded().Label("zone", "9").Annotation("note", "z").Taint("gpu", "9", noSchedule),
			claims:  []claim{pool().Member()},
			want:    right(),
			changes: putBack,
		},
		{
			name:    "what was removed by hand",
			node:    recorded(),
			claims:  []claim{pool().Member()},
			want:    right(),
			changes: putBack,
		},
		{
			name:    "but a value that was changed by hand and in the spec is the pool's change",
			node:    recorded().Label("zone", "9").Annotation("note", "x").Taint("gpu", "1", noSchedule),
			claims:  []claim{pool().Labels("zone", "2").Member()},
			want:    right().LabelOf("worker", "zone", "2"),
			changes: []string{"worker: updated label zone"},
		},
		{
			name:   "a person who wrote what the spec asks for next has it: the value is nobody's",
			node:   MakeNode("a").Label("zone", "2").Recorded("worker", slot{label, "zone"}, "1"),
			claims: []claim{MakePool("worker").Labels("zone", "2").Member()},
			want:   MakeNode("a").Label("zone", "2"),
		},
		{
			name:   "a record that somebody laid out by hand is written in our form",
			node:   MakeNode("a").Label("zone", "1").Record("{ \"worker\": {\"labels\": {\"zone\": \"1\"}}}\n"),
			claims: []claim{MakePool("worker").Labels("zone", "1").Member()},
			want:   MakeNode("a").LabelOf("worker", "zone", "1"),
		},
		{
			name:   "without its record, what is there is nobody's",
			node:   MakeNode("a").Label("zone", "1").Label("disk", "hdd"),
			claims: []claim{MakePool("worker").Labels("zone", "1").Vouching(slot{label, "disk"}).Member()},
		},
	} {
		row.run(t)
	}
}

func TestPlanRemoves(t *testing.T) {
	full := func() *NodeMaker {
		return MakeNode("a").Label("other", "1").LabelOf("worker", "zone", "1").AnnotationOf("worker", "note", "x").TaintOf("worker", "gpu", "1", noSchedule)
	}
	all := []slot{{label, "zone"}, {annotation, "note"}, {taint, "gpu:NoSchedule"}}
	bare := func() *NodeMaker { return MakeNode("a").Label("other", "1") }
	removed := []string{"worker: removed annotation note", "worker: removed label zone", "worker: removed taint gpu:NoSchedule"}

	for _, row := range []planRow{
		{
			name:    "what is taken out of the spec",
			node:    full(),
			claims:  []claim{MakePool("worker").Vouching(all...).Member()},
			want:    bare(),
			changes: removed,
		},
		{
			name:    "only what is taken out of the spec",
			node:    full(),
			claims:  []claim{MakePool("worker").Vouching(all...).Labels("zone", "1").Member()},
			want:    bare().LabelOf("worker", "zone", "1"),
			changes: []string{"worker: removed annotation note", "worker: removed taint gpu:NoSchedule"},
		},
		{
			name:    "everything, from a node that has left the pool",
			node:    full(),
			claims:  []claim{MakePool("worker").Labels("zone", "1").Annotations("note", "x").Taint("gpu", "1", noSchedule).Former()},
			want:    bare(),
			changes: removed,
		},
		{
			name:    "everything, when the pool is deleted",
			node:    full(),
			claims:  []claim{MakePool("worker").Labels("zone", "1").Annotations("note", "x").Taint("gpu", "1", noSchedule).Deleted().Former()},
			want:    bare(),
			changes: removed,
		},
		{
			name:    "an empty value too",
			node:    MakeNode("a").LabelOf("worker", "zone", "").TaintOf("worker", "gpu", "", noSchedule),
			claims:  []claim{MakePool("worker").Vouching(all...).Member()},
			want:    MakeNode("a"),
			changes: []string{"worker: removed label zone", "worker: removed taint gpu:NoSchedule"},
		},
		{
			name:    "a NoExecute taint at once: taking one off evicts nobody",
			node:    MakeNode("a").TaintOf("worker", "gpu", "1", noExecute),
			claims:  []claim{MakePool("worker").Taint("gpu", "1", noExecute).Former()},
			want:    MakeNode("a"),
			changes: []string{"worker: removed taint gpu:NoExecute"},
		},
		{
			name:    "one effect of a taint, and puts the other",
			node:    MakeNode("a").TaintOf("worker", "gpu", "1", noSchedule),
			claims:  []claim{MakePool("worker").Taint("gpu", "1", preferNoSchedule).Vouching(all...).Member()},
			want:    MakeNode("a").TaintOf("worker", "gpu", "1", preferNoSchedule),
			changes: []string{"worker: removed taint gpu:NoSchedule", "worker: put taint gpu:PreferNoSchedule"},
		},
		{
			name:   "only the record, of what a person wrote over",
			node:   bare().Label("zone", "9").Taint("gpu", "9", noSchedule).Recorded("worker", slot{label, "zone"}, "1").Recorded("worker", slot{taint, "gpu:NoSchedule"}, "1"),
			claims: []claim{MakePool("worker").Vouching(all...).Member()},
			want:   bare().Label("zone", "9").Taint("gpu", "9", noSchedule),
		},
		{
			name:   "only the record, of what a person removed",
			node:   bare().Recorded("worker", slot{label, "zone"}, "").Recorded("worker", slot{taint, "gpu:NoSchedule"}, "1"),
			claims: []claim{MakePool("worker").Vouching(all...).Deleted().Former()},
			want:   bare(),
		},
		{
			name:   "nothing of an equal value that was there before",
			node:   bare().Label("zone", "1"),
			claims: []claim{MakePool("worker").Labels("zone", "1").Deleted().Former()},
		},
		{
			name: "of two pools only what the one has put there",
			node: MakeNode("a").LabelOf("worker", "zone", "1").LabelOf("gpu", "disk", "ssd"),
			claims: []claim{
				MakePool("worker").Labels("zone", "1").Former(),
				MakePool("gpu").Labels("disk", "ssd").Member(),
			},
			want:    MakeNode("a").LabelOf("gpu", "disk", "ssd"),
			changes: []string{"worker: removed label zone"},
		},
	} {
		row.run(t)
	}
}

func TestPlanConflicts(t *testing.T) {
	old := func() *PoolMaker { return MakePool("old").CreatedAt(1).Labels("zone", "1") }
	young := func() *PoolMaker { return MakePool("young").CreatedAt(2).Labels("zone", "2") }

	for _, row := range []planRow{
		{
			name:      "the older pool has the key, the younger says so",
			node:      MakeNode("a"),
			claims:    []claim{young().Member(), old().Member()},
			want:      MakeNode("a").LabelOf("old", "zone", "1"),
			changes:   []string{"old: put label zone"},
			conflicts: []string{"young wants label zone of old"},
		},
		{
			name:      "and goes on saying so when the node is right",
			node:      MakeNode("a").LabelOf("old", "zone", "1"),
			claims:    []claim{young().Member(), old().Member()},
			conflicts: []string{"young wants label zone of old"},
		},
		{
			name:      "of two equally old pools the first by name has it",
			node:      MakeNode("a"),
			claims:    []claim{MakePool("y").Labels("zone", "2").Member(), MakePool("x").Labels("zone", "1").Member()},
			want:      MakeNode("a").LabelOf("x", "zone", "1"),
			changes:   []string{"x: put label zone"},
			conflicts: []string{"y wants label zone of x"},
		},
		{
			name: "of three pools the oldest has it, against both others",
			node: MakeNode("a"),
			claims: []claim{young().Member(), old().Member(),
				MakePool("middle").CreatedAt(1).Labels("zone", "0").Member()},
			want:      MakeNode("a").LabelOf("middle", "zone", "0"),
			changes:   []string{"middle: put label zone"},
			conflicts: []string{"old wants label zone of middle", "young wants label zone of middle"},
		},
		{
			name:    "equal values are no conflict; the older has it on record",
			node:    MakeNode("a"),
			claims:  []claim{young().Labels("zone", "1").Member(), old().Member()},
			want:    MakeNode("a").LabelOf("old", "zone", "1"),
			changes: []string{"old: put label zone"},
		},
		{
			name:      "the older takes a key from the younger when it begins to ask for it",
			node:      MakeNode("a").LabelOf("young", "zone", "2"),
			claims:    []claim{young().Member(), old().Member()},
			want:      MakeNode("a").LabelOf("old", "zone", "1"),
			changes:   []string{"old: put label zone"},
			conflicts: []string{"young wants label zone of old"},
		},
		{
			name:      "but not before its status vouches for the key",
			node:      MakeNode("a").LabelOf("young", "zone", "2"),
			claims:    []claim{young().Member(), old().NotVouching().Member()},
			conflicts: []string{"young wants label zone of old"},
			unshaped:  []string{"old"},
		},
		{
			// Or else a younger pool that is looked at first has the key for a
			// moment, and what was there before is lost.
			name:      "a key waits for the older pool also before that one holds its finalizer",
			node:      MakeNode("a").Label("zone", "1"),
			claims:    []claim{young().Member(), old().NotInForce().Member()},
			conflicts: []string{"young wants label zone of old"},
		},
		{
			name:    "the younger takes over when the older does not ask any more",
			node:    MakeNode("a").LabelOf("old", "zone", "1"),
			claims:  []claim{young().Member(), MakePool("old").CreatedAt(1).Vouching(slot{label, "zone"}).Member()},
			want:    MakeNode("a").LabelOf("young", "zone", "2"),
			changes: []string{"young: put label zone"},
		},
		{
			name:    "the younger takes over when the older is deleted",
			node:    MakeNode("a").LabelOf("old", "zone", "1"),
			claims:  []claim{young().Member(), old().Deleted().Former()},
			want:    MakeNode("a").LabelOf("young", "zone", "2"),
			changes: []string{"young: put label zone"},
		},
		{
			name:    "the younger takes over when the node has left the older",
			node:    MakeNode("a").LabelOf("old", "zone", "1"),
			claims:  []claim{young().Member(), old().Former()},
			want:    MakeNode("a").LabelOf("young", "zone", "2"),
			changes: []string{"young: put label zone"},
		},
		{
			name:    "the younger takes over when the older is gone without a trace but the record",
			node:    MakeNode("a").LabelOf("old", "zone", "1"),
			claims:  []claim{young().Member()},
			want:    MakeNode("a").LabelOf("young", "zone", "2"),
			changes: []string{"young: put label zone"},
		},
		{
			name:   "an equal value is taken over without a change",
			node:   MakeNode("a").LabelOf("old", "zone", "1"),
			claims: []claim{young().Labels("zone", "1").Member(), old().Deleted().Former()},
			want:   MakeNode("a").LabelOf("young", "zone", "1"),
		},
		{
			// Or else nobody vouches for it any more if the younger is edited
			// next: the label stays for good.
			name:   "but not before the younger's status vouches for the key: until then it stays the older's",
			node:   MakeNode("a").LabelOf("old", "zone", "1"),
			claims: []claim{young().Labels("zone", "1").NotVouching().Member(), old().Deleted().Former()},
		},
		{
			name:   "nor before the younger holds its finalizer",
			node:   MakeNode("a").LabelOf("old", "zone", "1"),
			claims: []claim{young().Labels("zone", "1").NotInForce().Member(), old().Deleted().Former()},
		},
		{
			name:     "nor is another value written over it before that",
			node:     MakeNode("a").LabelOf("old", "zone", "1"),
			claims:   []claim{young().NotVouching().Member(), old().Deleted().Former()},
			unshaped: []string{"young"},
		},
		{
			name:   "what a person wrote over the older's value is nobody's, also if the younger asks for just that",
			node:   MakeNode("a").Label("zone", "2").Recorded("old", slot{label, "zone"}, "1"),
			claims: []claim{young().Member(), old().Deleted().Former()},
			want:   MakeNode("a").Label("zone", "2"),
		},
		{
			name:   "a key of two pools, one of them a label and one a taint, is no conflict",
			node:   MakeNode("a").LabelOf("old", "zone", "1").TaintOf("young", "zone", "2", noSchedule),
			claims: []claim{old().Member(), MakePool("young").CreatedAt(2).Taint("zone", "2", noSchedule).Member()},
		},
		{
			name:   "a taint key with two effects is no conflict",
			node:   MakeNode("a").TaintOf("x", "gpu", "1", noSchedule).TaintOf("y", "gpu", "2", preferNoSchedule),
			claims: []claim{MakePool("x").Taint("gpu", "1", noSchedule).Member(), MakePool("y").Taint("gpu", "2", preferNoSchedule).Member()},
		},
		{
			name:      "a taint with two values is one",
			node:      MakeNode("a").TaintOf("x", "gpu", "1", noSchedule),
			claims:    []claim{MakePool("x").Taint("gpu", "1", noSchedule).Member(), MakePool("y").Taint("gpu", "2", noSchedule).Member()},
			conflicts: []string{"y wants taint gpu:NoSchedule of x"},
		},
	} {
		row.run(t)
	}
}

func TestPlanDistrustsTheRecord(t *testing.T) {
	zone := slot{label, "zone"}
	for _, row := range []planRow{
		{
			name:   "a forged entry takes off nothing that the pool does not vouch for",
			node:   MakeNode("a").LabelOf("worker", "zone", "1").TaintOf("worker", "gpu", "", noSchedule),
			claims: []claim{MakePool("worker").Labels("disk", "ssd").Former()},
		},
		{
			name:   "nor does one for a pool that is being deleted; the pool lets go of it, or it could never end",
			node:   MakeNode("a").LabelOf("worker", "zone", "1"),
			claims: []claim{MakePool("worker").Labels("disk", "ssd").Deleted().Former()},
			want:   MakeNode("a").Label("zone", "1"),
		},
		{
			name:   "nor one for a pool that does not exist",
			node:   MakeNode("a").LabelOf("ghost", "zone", "1").LabelOf("worker", "disk", "ssd"),
			claims: []claim{MakePool("worker").Labels("disk", "ssd").Member()},
		},
		{
			name:   "an entry of another value than the node's takes nothing off",
			node:   MakeNode("a").Label("zone", "1").Recorded("worker", zone, "2"),
			claims: []claim{MakePool("worker").Vouching(zone).Member()},
			want:   MakeNode("a").Label("zone", "1"),
		},
		{
			name:   "vouching for a label is not vouching for the annotation or taint of that key",
			node:   MakeNode("a").AnnotationOf("worker", "zone", "1").TaintOf("worker", "zone", "1", noSchedule),
			claims: []claim{MakePool("worker").Vouching(zone, slot{label, "zone:NoSchedule"}).Member()},
		},
		{
			name:   "a key of the kubelet is safe as no pool can vouch for it",
			node:   MakeNode("a").LabelOf("worker", "kubernetes.io/hostname", "a").TaintOf("worker", "node.kubernetes.io/unreachable", "", noExecute),
			claims: []claim{MakePool("worker").Labels("disk", "ssd").Former()},
		},
		{
			name:   "an unreadable record is made anew from what the pools ask for and the node has",
			node:   MakeNode("a").Label("zone", "1").Label("other", "1").Taint("gpu", "", noSchedule).Record("{"),
			claims: []claim{MakePool("worker").Labels("zone", "1").Taint("gpu", "", noSchedule).Member()},
			want:   MakeNode("a").LabelOf("worker", "zone", "1").Label("other", "1").TaintOf("worker", "gpu", "", noSchedule),
		},
		{
			name:    "and what the node lacks is put there in the same write",
			node:    MakeNode("a").Label("zone", "1").Label("disk", "hdd").Record("[]"),
			claims:  []claim{MakePool("worker").Labels("zone", "1", "disk", "ssd").Annotations("note", "x").Member()},
			want:    MakeNode("a").LabelOf("worker", "zone", "1").LabelOf("worker", "disk", "ssd").AnnotationOf("worker", "note", "x"),
			changes: []string{"worker: put annotation note", "worker: replaced label disk"},
		},
		{
			name:    "a pool that is being deleted takes off what it asked for, though the record is unreadable",
			node:    MakeNode("a").Label("zone", "1").Label("disk", "hdd").Record("?"),
			claims:  []claim{MakePool("worker").Labels("zone", "1", "disk", "ssd").Deleted().Former()},
			want:    MakeNode("a").Label("disk", "hdd"),
			changes: []string{"worker: removed label zone"},
		},
		{
			name: "an unreadable record on a node of no pool goes away",
			node: MakeNode("a").Label("zone", "1").Record("{"),
			want: MakeNode("a").Label("zone", "1"),
		},
		{
			name:   "with two pools made anew, the older has it",
			node:   MakeNode("a").Label("zone", "1").Record("{"),
			claims: []claim{MakePool("young").CreatedAt(2).Labels("zone", "1").Member(), MakePool("old").CreatedAt(1).Labels("zone", "1").Member()},
			want:   MakeNode("a").LabelOf("old", "zone", "1"),
		},
		{
			name:   "a forged second holder of a key that a pool has is dropped",
			node:   MakeNode("a").LabelOf("worker", "zone", "1").Recorded("ghost", zone, "1"),
			claims: []claim{MakePool("worker").Labels("zone", "1").Member()},
			want:   MakeNode("a").LabelOf("worker", "zone", "1"),
		},
		{
			name:   "a forged entry about the record itself takes off nothing",
			node:   MakeNode("a").Recorded("worker", slot{annotation, tidekeeperv1.RecordAnnotation}, "x"),
			claims: []claim{MakePool("worker").Labels("disk", "ssd").Former()},
		},
	} {
		row.run(t)
	}
}

func TestPlanHoldsBackNoExecute(t *testing.T) {
	pool := func() *PoolMaker { return MakePool("worker").Labels("zone", "1").Taint("gpu", "1", noExecute) }
	gpu := slot{taint, "gpu:NoExecute"}

	for _, row := range []planRow{
		{
			name:     "until the node is admitted, and puts the rest there at once",
			node:     MakeNode("a"),
			claims:   []claim{pool().Taint("gpu", "1", noSchedule).Member()},
			want:     MakeNode("a").LabelOf("worker", "zone", "1").TaintOf("worker", "gpu", "1", noSchedule),
			changes:  []string{"worker: put label zone", "worker: put taint gpu:NoSchedule"},
			heldBack: []string{"worker"},
		},
		{
			name:     "with no write if nothing else is to be done",
			node:     MakeNode("a").LabelOf("worker", "zone", "1"),
			claims:   []claim{pool().Member()},
			heldBack: []string{"worker"},
			unshaped: []string{"worker"},
		},
		{
			name:   "and puts it there with the time once the node is admitted",
			node:   MakeNode("a").LabelOf("worker", "zone", "1"),
			claims: []claim{pool().Admitted()},
			want: MakeNode("a").LabelOf("worker", "zone", "1").TaintAt("gpu", "1", noExecute, planTime).
				Recorded("worker", gpu, "1"),
			changes: []string{"worker: put taint gpu:NoExecute"},
			evicts:  []string{"worker"},
		},
		{
			name:     "also when its value changes: that may evict others",
			node:     MakeNode("a").LabelOf("worker", "zone", "1").TaintOf("worker", "gpu", "0", noExecute),
			claims:   []claim{pool().Member()},
			heldBack: []string{"worker"},
			unshaped: []string{"worker"},
		},
		{
			name: "and stamps the change with its own time",
			node: MakeNode("a").LabelOf("worker", "zone", "1").TaintAt("gpu", "0", noExecute, planTime.Add(-time.Hour)).
				Recorded("worker", gpu, "0"),
			claims: []claim{pool().Admitted()},
			want: MakeNode("a").LabelOf("worker", "zone", "1").TaintAt("gpu", "1", noExecute, planTime).
				Recorded("worker", gpu, "1"),
			changes: []string{"worker: updated taint gpu:NoExecute"},
			evicts:  []string{"worker"},
		},
		{
			name:     "also when a person took it off by hand",
			node:     MakeNode("a").LabelOf("worker", "zone", "1").Recorded("worker", gpu, "1"),
			claims:   []claim{pool().Member()},
			heldBack: []string{"worker"},
			unshaped: []string{"worker"},
		},
		{
			name: "once it is there it stays, admitted or not",
			node: MakeNode("a").LabelOf("worker", "zone", "1").TaintAt("gpu", "1", noExecute, planTime.Add(-time.Hour)).
				Recorded("worker", gpu, "1"),
			claims: []claim{pool().Member()},
		},
		{
			name:     "is not held back before the status vouches for it: it is not its turn to wait yet",
			node:     MakeNode("a").LabelOf("worker", "zone", "1"),
			claims:   []claim{pool().NotVouching().Vouching(slot{label, "zone"}).Member()},
			unshaped: []string{"worker"},
		},
		{
			name: "while the older waits, what the younger has put there stays, with its record",
			node: MakeNode("a").TaintOf("young", "gpu", "2", noExecute),
			claims: []claim{MakePool("old").CreatedAt(1).Taint("gpu", "1", noExecute).Member(),
				MakePool("young").CreatedAt(2).Taint("gpu", "2", noExecute).Admitted()},
			conflicts: []string{"young wants taint gpu:NoExecute of old"},
			heldBack:  []string{"old"},
			unshaped:  []string{"old"},
		},
		{
			name: "one pool's admission is not another's",
			node: MakeNode("a"),
			claims: []claim{MakePool("x").Taint("gpu", "", noExecute).Member(),
				MakePool("y").Taint("fpga", "", noExecute).Admitted()},
			want: MakeNode("a").TaintAt("fpga", "", noExecute, planTime).
				Recorded("y", slot{taint, "fpga:NoExecute"}, ""),
			changes:  []string{"y: put taint fpga:NoExecute"},
			heldBack: []string{"x"},
			unshaped: []string{"x", "y"},
			evicts:   []string{"y"},
		},
	} {
		row.run(t)
	}
}

// A taint of somebody else keeps its value, its place and its time, whatever
// happens to ours between them.
func TestPlanLeavesTaintsOfOthersAlone(t *testing.T) {
	before := planTime.Add(-48 * time.Hour)
	gpu := slot{taint, "gpu:NoSchedule"}
	others := func(between ...func(*NodeMaker)) *NodeMaker {
		m := MakeNode("a").TaintAt("node.kubernetes.io/unreachable", "", noExecute, before)
		for _, put := range between {
			put(m)
		}
		return m.Taint("z", "1", preferNoSchedule).TaintAt("a", "1", noExecute, before)
	}
	ours := func(value string) func(*NodeMaker) {
		return func(m *NodeMaker) { m.TaintOf("worker", "gpu", value, noSchedule) }
	}
	for _, row := range []planRow{
		{
			name:    "new taints go to the end, in the order of their keys",
			node:    others(),
			claims:  []claim{MakePool("worker").Taint("gpu", "1", noSchedule).Taint("b", "", noSchedule).Member()},
			want:    others().TaintOf("worker", "b", "", noSchedule).TaintOf("worker", "gpu", "1", noSchedule),
			changes: []string{"worker: put taint b:NoSchedule", "worker: put taint gpu:NoSchedule"},
		},
		{
			name:    "a changed taint keeps its place",
			node:    others(ours("1")),
			claims:  []claim{MakePool("worker").Taint("gpu", "2", noSchedule).Member()},
			want:    others(ours("2")),
			changes: []string{"worker: updated taint gpu:NoSchedule"},
		},
		{
			name:    "a removed taint leaves the others where they are",
			node:    others(ours("1")),
			claims:  []claim{MakePool("worker").Vouching(gpu).Member()},
			want:    others(),
			changes: []string{"worker: removed taint gpu:NoSchedule"},
		},
		{
			name:   "a taint of somebody else with one of our keys and another effect is somebody else's",
			node:   others().Taint("gpu", "9", preferNoSchedule),
			claims: []claim{MakePool("worker").Taint("gpu", "1", noSchedule).Member()},
			want: others().Taint("gpu", "9", preferNoSchedule).
				TaintOf("worker", "gpu", "1", noSchedule),
			changes: []string{"worker: put taint gpu:NoSchedule"},
		},
	} {
		row.run(t)
	}
}

// The whole patch as it goes over the wire.
func TestPatch(t *testing.T) {
	gpu := slot{taint, "gpu:NoExecute"}
	for _, tc := range []struct {
		name  string
		node  *NodeMaker
		claim claim
		want  string
	}{
		{
			name: "everything that changes is in one patch, under the version that it was planned for",
			node: MakeNode("a").ResourceVersion("42").Label("kept", "1").Annotation("kept", "1").Taint("kept", "1", noSchedule).
				LabelOf("worker", "gone", "1").AnnotationOf("worker", "gone", "1").TaintOf("worker", "gone", "1", noSchedule),
			claim: MakePool("worker").Labels("zone", "1").Annotations("note", "x").Taint("gpu", "", noExecute).
				Vouching(slot{label, "gone"}, slot{annotation, "gone"}, slot{taint, "gone:NoSchedule"}).Admitted(),
			want: `{
				"metadata": {
					"resourceVersion": "42",
					"labels": {"zone": "1", "gone": null},
					"annotations": {"note": "x", "gone": null, "tidekeeper.dev/node-pools":
						"{\"worker\":{\"labels\":{\"zone\":\"1\"},\"annotations\":{\"note\":\"x\"},\"taints\":{\"gpu:NoExecute\":\"\"}}}"}
				},
				"spec": {"taints": [
					{"key": "kept", "value": "1", "effect": "NoSchedule"},
					{"key": "gpu", "effect": "NoExecute", "timeAdded": "2026-03-29T01:30:00Z"}
				]}
			}`,
		},
		{
			name:  "taints that do not change are not in it",
			node:  MakeNode("a").ResourceVersion("42").Taint("kept", "1", noSchedule),
			claim: MakePool("worker").Labels("zone", "1").Member(),
			want: `{"metadata": {"resourceVersion": "42", "labels": {"zone": "1"}, "annotations": {"tidekeeper.dev/node-pools":
				"{\"worker\":{\"labels\":{\"zone\":\"1\"}}}"}}}`,
		},
		{
			name:  "the last taint leaves an empty list, and the last entry no record",
			node:  MakeNode("a").ResourceVersion("42").TaintAt("gpu", "", noExecute, planTime).Recorded("worker", gpu, ""),
			claim: MakePool("worker").Taint("gpu", "", noExecute).Former(),
			want:  `{"metadata": {"resourceVersion": "42", "annotations": {"tidekeeper.dev/node-pools": null}}, "spec": {"taints": []}}`,
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			node := tc.node.Obj()
			plan := planNode(node, []claim{tc.claim})
			var want, got any
			if err := json.Unmarshal([]byte(tc.want), &want); err != nil {
				t.Fatalf("the row itself: %v", err)
			}
			if err := json.Unmarshal(plan.patch(node, planTime), &got); err != nil {
				t.Fatalf("the patch is no JSON: %v", err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("patch (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.node.Obj(), node); diff != "" {
				t.Errorf("making the patch changed the node (-before +after):\n%s", diff)
			}
		})
	}
}
