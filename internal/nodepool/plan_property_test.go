// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package nodepool

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"pgregory.net/rapid"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
)

// The properties below are about a small world in which people edit pools and
// nodes while the controllers do one write at a time, in any order, and may be
// killed after any of them. The controllers remember nothing, so a crash is
// nothing but the write that comes next not being the one that was due.

// What pools ask for and what people write by hand overlap on purpose; what is
// in foreignSlots is never any pool's.
var (
	contestedSlots = []slot{
		{label, "l0"}, {label, "l1"}, {label, "l2"}, {annotation, "l0"}, {annotation, "a1"},
		{taint, "t0:NoSchedule"}, {taint, "t0:NoExecute"}, {taint, "t1:PreferNoSchedule"},
	}
	foreignSlots = []slot{
		{label, "f0"}, {annotation, "f0"}, {taint, "f0:NoSchedule"}, {taint, "f1:NoExecute"}, {taint, "t1:NoSchedule"},
	}
	worldValues = []string{"", "1", "2"}
	worldNodes  = []string{"n0", "n1"}
	worldPools  = []string{"p0", "p1", "p2", "p3"}
)

// place is a slot of one node.
type place struct {
	node string
	slot slot
}

// written is when something was last written to a place, and what.
type written struct {
	tick  int
	value string
}

type world struct {
	nodes map[string]*corev1.Node
	pools map[string]*tidekeeperv1.NodePool
	// twins are the nodes with nothing but the edits of people.
	twins map[string]*corev1.Node

	tick int
	// byHand and byPool are the last writes to each place. A pool's removal
	// is not a write here.
	byHand, byPool map[place]written
	// owners are the pools that have written to each place since the last
	// edit by people, in order.
	owners map[place][]*tidekeeperv1.NodePool
}

func drawWorld(t *rapid.T) *world {
	w := &world{
		nodes: map[string]*corev1.Node{}, pools: map[string]*tidekeeperv1.NodePool{}, twins: map[string]*corev1.Node{},
		byHand: map[place]written{}, byPool: map[place]written{}, owners: map[place][]*tidekeeperv1.NodePool{},
	}
	for _, name := range worldNodes {
		w.nodes[name], w.twins[name] = MakeNode(name).Obj(), MakeNode(name).Obj()
		for _, s := range slices.Concat(contestedSlots, foreignSlots) {
			if rapid.Bool().Draw(t, "has "+s.String()) {
				w.edit(name, s, rapid.SampledFrom(worldValues).Draw(t, "value"), true)
			}
		}
		for _, pool := range worldPools {
			if rapid.Bool().Draw(t, "role "+pool) {
				w.edit(name, slot{label, tidekeeperv1.RoleLabelPrefix + pool}, "", true)
			}
		}
	}
	return w
}

func (w *world) clone() *world {
	c := &world{
		nodes: map[string]*corev1.Node{}, pools: map[string]*tidekeeperv1.NodePool{}, twins: map[string]*corev1.Node{},
		tick: w.tick, byHand: maps.Clone(w.byHand), byPool: maps.Clone(w.byPool), owners: map[place][]*tidekeeperv1.NodePool{},
	}
	for name := range w.nodes {
		c.nodes[name], c.twins[name] = w.nodes[name].DeepCopy(), w.twins[name].DeepCopy()
	}
	for name, pool := range w.pools {
		c.pools[name] = pool.DeepCopy()
	}
	return c
}

// edit writes to a place by hand, or removes what is there.
func (w *world) edit(node string, s slot, value string, is bool) {
	w.tick++
	w.byHand[place{node, s}] = written{w.tick, value}
	clear(w.owners)
	for _, n := range []*corev1.Node{w.nodes[node], w.twins[node]} {
		switch {
		case s.kind == label && is:
			n.Labels = with(n.Labels, s.key, value)
		case s.kind == label:
			delete(n.Labels, s.key)
		case s.kind == annotation && is:
			n.Annotations = with(n.Annotations, s.key, value)
		case s.kind == annotation:
			delete(n.Annotations, s.key)
		default:
			key, effect, _ := strings.Cut(s.key, ":")
			other := func(t corev1.Taint) bool { return taintKey(t.Key, t.Effect) == s.key }
			i := slices.IndexFunc(n.Spec.Taints, other)
			switch {
			case is && i >= 0:
				n.Spec.Taints[i].Value = value
			case is:
				n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: key, Value: value, Effect: corev1.TaintEffect(effect)})
			default:
				n.Spec.Taints = slices.DeleteFunc(n.Spec.Taints, other)
			}
		}
		n.ResourceVersion += "h"
	}
}

func drawSpec(t *rapid.T) tidekeeperv1.NodePoolSpec {
	m := MakePool("")
	for _, s := range contestedSlots {
		if !rapid.Bool().Draw(t, "asks for "+s.String()) {
			continue
		}
		value := rapid.SampledFrom(worldValues).Draw(t, "value")
		switch s.kind {
		case label:
			m.Labels(s.key, value)
		case annotation:
			m.Annotations(s.key, value)
		default:
			key, effect, _ := strings.Cut(s.key, ":")
			m.Taint(key, value, corev1.TaintEffect(effect))
		}
	}
	switch rapid.IntRange(0, 3).Draw(t, "selector") {
	case 0:
		m.MatchLabels("f0", "1")
	case 1:
		m.MatchExpression("f0", metav1.LabelSelectorOpNotIn, "1")
	}
	return m.Obj().Spec
}

// people returns what people do.
func (w *world) people() map[string]func(*rapid.T) {
	value := rapid.SampledFrom(worldValues)
	return map[string]func(*rapid.T){
		"somebody writes to a node": func(t *rapid.T) {
			w.edit(rapid.SampledFrom(worldNodes).Draw(t, "node"), rapid.SampledFrom(contestedSlots).Draw(t, "slot"),
				value.Draw(t, "value"), rapid.IntRange(0, 2).Draw(t, "write, not remove") > 0)
		},
		"somebody writes something else to a node": func(t *rapid.T) {
			w.edit(rapid.SampledFrom(worldNodes).Draw(t, "node"), rapid.SampledFrom(foreignSlots).Draw(t, "slot"),
				value.Draw(t, "value"), rapid.Bool().Draw(t, "write, not remove"))
		},
		"somebody moves a node": func(t *rapid.T) {
			role := slot{label, tidekeeperv1.RoleLabelPrefix + rapid.SampledFrom(worldPools).Draw(t, "role")}
			w.edit(rapid.SampledFrom(worldNodes).Draw(t, "node"), role, "", rapid.Bool().Draw(t, "into the pool, not out of it"))
		},
		"somebody applies a pool": func(t *rapid.T) {
			name, spec := rapid.SampledFrom(worldPools).Draw(t, "name"), drawSpec(t)
			clear(w.owners)
			if pool, ok := w.pools[name]; ok {
				pool.Spec, pool.Generation = spec, pool.Generation+1
				return
			}
			// Two in a row are created in the same second.
			pool := MakePool(name).CreatedAt(w.tick / 2).Obj()
			pool.Spec, pool.Finalizers = spec, nil
			w.pools[name] = pool
			w.tick++
		},
		"somebody deletes a pool": func(t *rapid.T) {
			w.delete(rapid.SampledFrom(worldPools).Draw(t, "name"))
		},
	}
}

func (w *world) delete(name string) {
	clear(w.owners)
	switch pool, ok := w.pools[name]; {
	case !ok || pool.DeletionTimestamp != nil:
	case len(pool.Finalizers) == 0:
		delete(w.pools, name)
	default:
		w.pools[name] = (&PoolMaker{*pool}).Deleted().Obj()
	}
}

// work is what the controllers can be about: one write at most.
type work struct{ node, pool string }

// allWork returns what the controllers look at when they start.
func (w *world) allWork() []work {
	all := []work{}
	for _, name := range slices.Sorted(maps.Keys(w.nodes)) {
		all = append(all, work{node: name})
	}
	for _, name := range slices.Sorted(maps.Keys(w.pools)) {
		all = append(all, work{pool: name})
	}
	return all
}

// do lets a controller do one thing, and tells whether it wrote.
func (w *world) do(t *rapid.T, what work, mayEvict bool) bool {
	if what.node != "" {
		return w.doNode(t, w.nodes[what.node], mayEvict)
	}
	if pool, ok := w.pools[what.pool]; ok {
		return w.doPool(t, pool)
	}
	return false
}

// doPool is the pool controller: the finalizer first, then what the status
// vouches for; on deletion, the finalizer goes when no node carries anything.
func (w *world) doPool(t *rapid.T, pool *tidekeeperv1.NodePool) bool {
	held := map[slot]bool{}
	for _, node := range w.nodes {
		for s := range w.record(t, node)[pool.Name] {
			held[s] = true
		}
	}
	switch {
	case pool.DeletionTimestamp != nil && len(held) == 0:
		delete(w.pools, pool.Name)
		return true
	case pool.DeletionTimestamp == nil && len(pool.Finalizers) == 0:
		pool.Finalizers = []string{tidekeeperv1.NodePoolFinalizer}
		return true
	}
	m := (&PoolMaker{*pool.DeepCopy()}).NotVouching()
	asked := map[slot]bool{}
	for s := range wants(pool) {
		asked[s] = true
	}
	for _, s := range contestedSlots {
		if asked[s] || held[s] && vouches(pool, s) {
			m.Vouching(s)
		}
	}
	managed := m.Obj().Status.Managed
	if cmp.Equal(managed, pool.Status.Managed) {
		return false
	}
	pool.Status.Managed = managed
	return true
}

func (w *world) record(t *rapid.T, node *corev1.Node) record {
	r, err := parseRecord(node.Annotations[tidekeeperv1.RecordAnnotation])
	if err != nil {
		t.Fatalf("node %s: %v", node.Name, err)
	}
	return r
}

// claims are all pools that select the node and all that its record names.
func (w *world) claims(t *rapid.T, node *corev1.Node, mayEvict bool) []claim {
	recorded := w.record(t, node)
	claims := []claim{}
	for _, pool := range w.pools {
		selector, err := Selector(pool)
		if err != nil {
			t.Fatalf("pool %s: %v", pool.Name, err)
		}
		selects := selector.Matches(labels.Set(node.Labels))
		if _, ok := recorded[pool.Name]; selects || ok {
			claims = append(claims, claim{pool: pool, member: selects && pool.DeletionTimestamp == nil, mayEvict: mayEvict})
		}
	}
	return claims
}

// doNode is the node controller.
func (w *world) doNode(t *rapid.T, node *corev1.Node, mayEvict bool) bool {
	claims := w.claims(t, node, mayEvict)
	plan := planNode(node, claims)
	if plan.empty() {
		return false
	}
	w.tick++
	for s, value := range plan.set {
		owner := slices.IndexFunc(claims, func(c claim) bool { _, ok := plan.record[c.pool.Name][s]; return ok })
		if owner < 0 || !claims[owner].member || len(claims[owner].pool.Finalizers) == 0 || !vouches(claims[owner].pool, s) {
			t.Fatalf("%s of node %s is written for nobody who may; record: %s", s, node.Name, plan.record)
		}
		if s.noExecute() && !mayEvict {
			t.Fatalf("%s is put on node %s out of turn", s, node.Name)
		}
		at := place{node.Name, s}
		w.byPool[at] = written{w.tick, value}
		w.owners[at] = append(w.owners[at], claims[owner].pool)
	}
	after := carryOut(t, &plan, node)
	if again := planNode(after, claims); !again.empty() || len(again.changes) > 0 {
		t.Fatalf("carried out, the plan is not done: %s, then %s", plan.patch(node, planTime), again.patch(after, planTime))
	}
	w.nodes[node.Name] = after
	return true
}

// check is what holds at every moment.
func (w *world) check(t *rapid.T) {
	for name, node := range w.nodes {
		holders := map[slot]string{}
		for pool, holding := range w.record(t, node) {
			p, ok := w.pools[pool]
			if !ok {
				t.Fatalf("node %s carries something of pool %s, which is gone", name, pool)
			}
			for s := range holding {
				if !vouches(p, s) {
					t.Fatalf("node %s carries %s of pool %s, which does not vouch for it: it will stay for good", name, s, pool)
				}
				if other, taken := holders[s]; taken {
					t.Fatalf("node %s has %s of both %s and %s on record", name, s, pool, other)
				}
				holders[s] = pool
			}
		}

		is, byHand := slotsOf(node), slotsOf(w.twins[name])
		for _, s := range slices.Concat(contestedSlots, foreignSlots) {
			if _, touched := w.byPool[place{name, s}]; touched {
				continue
			}
			if value(is, s) != value(byHand, s) {
				t.Fatalf("no pool ever wrote %s of node %s, which is %s and should be %s", s, name, value(is, s), value(byHand, s))
			}
		}
		if diff := cmp.Diff(foreignTaints(w.twins[name]), foreignTaints(node), cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("taints of others on node %s (-want +got):\n%s", name, diff)
		}
		for _, s := range foreignSlots {
			if _, touched := w.byPool[place{name, s}]; touched {
				t.Fatalf("%s of node %s was written, which no pool asks for", s, name)
			}
		}
	}
	w.checkNoFlapping(t)
}

// checkNoFlapping: as long as people keep their hands off, a key only ever
// passes to an older pool, and nobody writes it twice.
func (w *world) checkNoFlapping(t *rapid.T) {
	for at, owners := range w.owners {
		for before, after := range pairs(owners) {
			if BySeniority(before, after) <= 0 {
				t.Fatalf("%s of node %s was written for pool %s, then for pool %s", at.slot, at.node, before.Name, after.Name)
			}
		}
	}
}

func pairs[T any](list []T) func(func(T, T) bool) {
	return func(yield func(T, T) bool) {
		for i := 1; i < len(list); i++ {
			if !yield(list[i-1], list[i]) {
				return
			}
		}
	}
}

func value(slots map[slot]string, s slot) string {
	if v, ok := slots[s]; ok {
		return fmt.Sprintf("%q", v)
	}
	return "absent"
}

func foreignTaints(node *corev1.Node) []corev1.Taint {
	return slices.DeleteFunc(slices.Clone(node.Spec.Taints), func(t corev1.Taint) bool {
		return !slices.Contains(foreignSlots, slot{taint, taintKey(t.Key, t.Effect)})
	})
}

// rest lets the controllers work until there is nothing more to do. At first
// they are killed again and again, at any point of what they are doing.
func (w *world) rest(t *rapid.T, how string) {
	for round := range 30 {
		todo := rapid.Permutation(w.allWork()).Draw(t, how+": order of work")
		crashes := round < 3
		if crashes {
			todo = todo[:rapid.IntRange(0, len(todo)).Draw(t, how+": killed after")]
		}
		wrote := false
		for _, what := range todo {
			mayEvict := !crashes || rapid.Bool().Draw(t, how+": may evict")
			if w.do(t, what, mayEvict) {
				wrote = true
				w.check(t)
			}
		}
		if !wrote && !crashes {
			return
		}
	}
	t.Fatal("the controllers never come to rest")
}

// history is a world after people and controllers were busy in it.
func history(t *rapid.T) *world {
	w := drawWorld(t)
	actions := w.people()
	actions[""] = w.check
	for _, turn := range []string{"a controller works", "a controller works on", "a controller works still"} {
		actions[turn] = func(t *rapid.T) {
			w.do(t, rapid.SampledFrom(w.allWork()).Draw(t, "work"), rapid.Bool().Draw(t, "may evict"))
		}
	}
	actions["the controllers come to rest"] = func(t *rapid.T) { w.rest(t, "rest") }
	t.Repeat(actions)
	return w
}

// From wherever people leave it, the world comes to the same end, in whatever
// order the controllers look at nodes and pools and however often they are
// killed on the way. On the way there no key flaps and nothing foreign is
// touched; see check.
func TestPlanConverges(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		one := history(t)
		other := one.clone()
		one.rest(t, "one way")
		other.rest(t, "other way")
		for name := range one.nodes {
			if diff := cmp.Diff(shapeOf(one.nodes[name]), shapeOf(other.nodes[name])); diff != "" {
				t.Fatalf("node %s at the end of two ways (-one +other):\n%s", name, diff)
			}
		}
		if diff := cmp.Diff(one.pools, other.pools); diff != "" {
			t.Fatalf("pools at the end of two ways (-one +other):\n%s", diff)
		}
	})
}

// shapeOf is what matters of a node: the order of taints does not, nor when
// they were added.
func shapeOf(node *corev1.Node) map[string]string {
	shape := map[string]string{}
	for s, value := range slotsOf(node) {
		shape[s.String()] = value
	}
	return shape
}

// When everything has come to rest, every member looks like its pools: each
// key has the value that the oldest pool asks for.
func TestPlanShapesMembers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := history(t)
		w.rest(t, "rest")
		for name, node := range w.nodes {
			members := []*tidekeeperv1.NodePool{}
			for _, c := range w.claims(t, node, true) {
				if c.member {
					members = append(members, c.pool)
				}
			}
			slices.SortFunc(members, BySeniority)
			is := slotsOf(node)
			settled := map[slot]bool{}
			for _, pool := range members {
				for s, want := range wants(pool) {
					if !settled[s] && value(is, s) != fmt.Sprintf("%q", want) {
						t.Fatalf("%s of node %s is %s; pool %s, the oldest, asks for %q", s, name, value(is, s), pool.Name, want)
					}
					settled[s] = true
				}
			}
			plan := planNode(node, w.claims(t, node, true))
			if len(plan.unshaped)+len(plan.heldBack) > 0 {
				t.Fatalf("node %s is at rest, but not said to look like %v, and held back for %v", name, plan.unshaped, plan.heldBack)
			}
		}
	})
}

// When all pools are deleted, nothing of them is left on any node:
//   - what no pool ever wrote is just what people made of it; a value that was
//     there before and was what a pool asks for is such a one;
//   - what a person wrote over a pool's value last stays;
//   - every other place that a pool wrote to is empty. What was there before
//     the pool does not come back.
func TestPlanLeavesNothingBehind(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := history(t)
		for name := range w.pools {
			w.delete(name)
		}
		w.rest(t, "clean-up")
		if len(w.pools) > 0 {
			t.Fatalf("pools that never end: %v", slices.Collect(maps.Keys(w.pools)))
		}
		for name, node := range w.nodes {
			if text, ok := node.Annotations[tidekeeperv1.RecordAnnotation]; ok {
				t.Fatalf("node %s still has the record %q", name, text)
			}
			is, byHand := slotsOf(node), slotsOf(w.twins[name])
			for _, s := range contestedSlots {
				at := place{name, s}
				pool, touched := w.byPool[at]
				hand := w.byHand[at]
				want := "absent"
				switch {
				case !touched, hand.tick > pool.tick && hand.value != pool.value:
					want = value(byHand, s)
				case hand.tick > pool.tick && value(is, s) == value(byHand, s):
					// A person wrote once more what the pool had put there.
					// Whether a plan saw the place without it in between
					// decides whose it is.
					continue
				}
				if value(is, s) != want {
					t.Fatalf("%s of node %s is %s and should be %s; last by a pool: %+v, by hand: %+v", s, name, value(is, s), want, pool, hand)
				}
			}
		}
	})
}

// Whatever is written into the record by hand, a plan takes off only what a
// pool vouches for, and writes only what a member asks for. And it has no
// second thoughts.
func TestPlanIsSafeAgainstForgery(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawWorld(t)
		for _, name := range worldPools {
			if !rapid.Bool().Draw(t, "exists") {
				continue
			}
			m := MakePool(name).CreatedAt(rapid.IntRange(0, 2).Draw(t, "age"))
			m.pool.Spec = drawSpec(t)
			for _, s := range contestedSlots {
				if rapid.Bool().Draw(t, "vouches") {
					m.Vouching(s)
				}
			}
			switch rapid.IntRange(0, 5).Draw(t, "deleted or new") {
			case 0:
				m.Deleted()
			case 1:
				m.NotInForce()
			}
			w.pools[name] = m.Obj()
		}
		node := w.nodes["n0"]
		node.Annotations = with(node.Annotations, tidekeeperv1.RecordAnnotation, drawForgery(t))
		forged, err := parseRecord(node.Annotations[tidekeeperv1.RecordAnnotation])
		unreadable := err != nil

		var claims []claim
		for _, pool := range w.pools {
			member := pool.DeletionTimestamp == nil && rapid.Bool().Draw(t, "member")
			if _, named := forged[pool.Name]; named || member {
				claims = append(claims, claim{pool: pool, member: member, mayEvict: rapid.Bool().Draw(t, "may evict")})
			}
		}
		plan := planNode(node, claims)
		is := slotsOf(node)
		for s := range plan.remove {
			if !slices.ContainsFunc(claims, func(c claim) bool {
				recorded, ok := forged[c.pool.Name][s]
				return vouches(c.pool, s) && (unreadable || ok && value(is, s) == fmt.Sprintf("%q", recorded))
			}) {
				t.Fatalf("%s is taken off on the word of the record alone: %s", s, node.Annotations[tidekeeperv1.RecordAnnotation])
			}
		}
		for s, want := range plan.set {
			if !slices.ContainsFunc(claims, func(c claim) bool {
				asks := false
				for asked, value := range wants(c.pool) {
					asks = asks || asked == s && value == want
				}
				return asks && c.member && len(c.pool.Finalizers) > 0 && vouches(c.pool, s) && (c.mayEvict || !s.noExecute())
			}) {
				t.Fatalf("%s is written, which no member may: %s", s, node.Annotations[tidekeeperv1.RecordAnnotation])
			}
		}
		after := carryOut(t, &plan, node)
		if again := planNode(after, claims); !again.empty() || len(again.changes) > 0 {
			t.Fatalf("carried out, the plan is not done: %s, then %s", plan.patch(node, planTime), again.patch(after, planTime))
		}
		if diff := cmp.Diff(foreignTaints(node), foreignTaints(after), cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("taints of others (-want +got):\n%s", diff)
		}
		for s := range is {
			if s == (slot{annotation, tidekeeperv1.RecordAnnotation}) || slices.Contains(contestedSlots, s) {
				continue
			}
			if now := slotsOf(after); value(is, s) != value(now, s) {
				t.Fatalf("%s was %s and is %s", s, value(is, s), value(now, s))
			}
		}
	})
}

// drawForgery makes a record that somebody who may edit nodes could write.
func drawForgery(t *rapid.T) string {
	if rapid.IntRange(0, 4).Draw(t, "unreadable") == 0 {
		return rapid.SampledFrom([]string{"{", "[]", " ", `{"p0":1}`, "\x00"}).Draw(t, "text")
	}
	r := record{}
	all := append(slices.Concat(contestedSlots, foreignSlots),
		slot{annotation, tidekeeperv1.RecordAnnotation}, slot{label, ""}, slot{taint, "t0"}, slot{taint, ":"}, slot{label, tidekeeperv1.RoleLabelPrefix + "p0"})
	for range rapid.IntRange(0, 12).Draw(t, "entries") {
		r.put(rapid.SampledFrom(append([]string{"ghost", ""}, worldPools...)).Draw(t, "pool"),
			rapid.SampledFrom(all).Draw(t, "slot"), rapid.SampledFrom(worldValues).Draw(t, "value"))
	}
	return r.String()
}
