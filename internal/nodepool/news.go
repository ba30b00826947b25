// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package nodepool

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
)

// News ripen: they are told when nothing has been added for a while, so that
// forty nodes that join at once are one event, and after some time in any case.
const (
	newsQuiet  = time.Second
	newsAtMost = 5 * time.Second
)

// news is what has happened to a pool and was not told yet. The zero value is
// no news.
type news struct {
	joined, left sets.Set[string]
	// shaped are the nodes that were changed because the pool asked for it.
	shaped sets.Set[string]
	// putBack and replaced name the keys, by node, that others had changed.
	putBack, replaced map[string][]slot
	// fought are the nodes that never come to rest.
	fought sets.Set[string]
	// failures by node.
	failures map[string]string

	// since is when the first of it was noticed, last the latest; both are
	// set by tell, the only one who knows the time.
	since, last time.Time
	fresh       bool
}

// announcement is one event to be.
type announcement struct {
	eventType, reason, action, note string
}

// moved adds that a node joined the pool (+1) or left it (-1). A node that
// comes back before anything was told has not moved.
func (n *news) moved(node string, sign int) {
	n.fresh = true
	to, from := &n.joined, n.left
	if sign < 0 {
		to, from = &n.left, n.joined
	}
	if from.Has(node) {
		from.Delete(node)
		return
	}
	if *to == nil {
		*to = sets.New[string]()
	}
	to.Insert(node)
}

// changed adds that something was written to a node.
func (n *news) changed(node string, c change) {
	n.fresh = true
	switch c.kind {
	case putBack:
		add(&n.putBack, node, c.slot)
	case replaced:
		add(&n.replaced, node, c.slot)
	default:
		if n.shaped == nil {
			n.shaped = sets.New[string]()
		}
		n.shaped.Insert(node)
	}
}

// foughtOver adds that a node never comes to rest.
func (n *news) foughtOver(node string) {
	n.fresh = true
	if n.fought == nil {
		n.fought = sets.New[string]()
	}
	n.fought.Insert(node)
}

// failed adds that a node could not be written.
func (n *news) failed(node string, err error) {
	n.fresh = true
	if n.failures == nil {
		n.failures = map[string]string{}
	}
	n.failures[node] = err.Error()
}

func add(to *map[string][]slot, node string, s slot) {
	if *to == nil {
		*to = map[string][]slot{}
	}
	(*to)[node] = append((*to)[node], s)
}

// tell returns the news that are ripe now and forgets them, or after how long
// they will be.
func (n *news) tell(now time.Time) ([]announcement, time.Duration) {
	if n.fresh {
		n.fresh = false
		n.last = now
		if n.since.IsZero() {
			n.since = now
		}
	}
	if n.since.IsZero() {
		return nil, 0
	}
	ripe := n.last.Add(newsQuiet)
	if latest := n.since.Add(newsAtMost); latest.Before(ripe) {
		ripe = latest
	}
	if now.Before(ripe) {
		return nil, ripe.Sub(now)
	}
	told := n.announcements()
	*n = news{}
	return told, 0
}

func (n *news) announcements() []announcement {
	var all []announcement
	say := func(eventType, reason, action, format string, args ...any) {
		all = append(all, announcement{eventType, reason, action, fmt.Sprintf(format, args...)})
	}
	if len(n.joined) > 0 {
		say(corev1.EventTypeNormal, EventNodesJoined, "Join", "%s joined the pool", these(sets.List(n.joined)))
	}
	if len(n.left) > 0 {
		say(corev1.EventTypeNormal, EventNodesLeft, "Leave", "%s left the pool", these(sets.List(n.left)))
	}
	if len(n.shaped) > 0 {
		say(corev1.EventTypeNormal, EventNodesUpdated, "Update", "brought %s up to date", these(sets.List(n.shaped)))
	}
	if len(n.replaced) > 0 {
		say(corev1.EventTypeNormal, EventValueReplaced, "Replace", "replaced values that others had set: %s", places(n.replaced))
	}
	if len(n.putBack) > 0 {
		say(corev1.EventTypeWarning, EventDriftCorrected, "Correct", "put back what others had changed: %s", places(n.putBack))
	}
	if len(n.fought) > 0 {
		say(corev1.EventTypeWarning, EventNodesFoughtOver, "Update",
			"somebody else, or another pool, undoes what this pool does to %s again and again; it is slowed down", these(sets.List(n.fought)))
	}
	for _, message := range slices.Compact(slices.Sorted(maps.Values(n.failures))) {
		var nodes []string
		for node, m := range n.failures {
			if m == message {
				nodes = append(nodes, node)
			}
		}
		slices.Sort(nodes)
		say(corev1.EventTypeWarning, EventNodeUpdateFailed, "Update", "could not update %s: %s", these(nodes), message)
		if len(all) > 8 {
			break
		}
	}
	return all
}

// these names nodes: all of a few, some of many.
func these(names []string) string {
	const most = 5
	switch {
	case len(names) == 1:
		return "node " + names[0]
	case len(names) <= most:
		return fmt.Sprintf("%d nodes (%s)", len(names), strings.Join(names, ", "))
	default:
		return fmt.Sprintf("%d nodes (%s and %d more)", len(names), strings.Join(names[:most], ", "), len(names)-most)
	}
}

// places names what was changed on which node: all of a few, some of many.
func places(slots map[string][]slot) string {
	const most = 5
	var all []string
	for node, on := range slots {
		for _, s := range on {
			all = append(all, fmt.Sprintf("%s on node %s", s, node))
		}
	}
	slices.SortFunc(all, cmp.Compare)
	all = slices.Compact(all)
	if len(all) <= most {
		return strings.Join(all, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(all[:most], ", "), len(all)-most)
}
