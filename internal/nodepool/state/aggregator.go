// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package state

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/nodepool/plan"
	"tidekeeper.dev/tidekeeper/internal/nodepool/setting"
)

// News ripen: they are told when nothing has been added for a while, so that
// forty nodes that join at once are one event, and after some time in any case.
const (
	eventDelay    = time.Second
	maxEventDelay = 5 * time.Second
)

// eventAggregator is what has happened to a pool and was not told yet. The zero value is
// no news.
type eventAggregator struct {
	joined, left sets.Set[string]
	// applied are the nodes that were changed because the pool asked for it.
	applied sets.Set[string]
	// restored and replaced name the keys, by node, that others had changed.
	restored, replaced map[string][]setting.Key
	// conflicting are the nodes that never come to rest.
	conflicting sets.Set[string]
	// failures by node.
	failures map[string]string

	// since is when the first of it was noticed, last the latest; both are
	// set by tell, the only one who knows the time.
	since, last time.Time
	fresh       bool
}

// Event is one event to be.
type Event struct {
	Type, Reason, Action, Note string
	// Node is the one that it is about, if it is about one only.
	Node string
}

// recordJoin notes that a node joined the pool. A node that left it before that was
// reported has done nothing.
func (n *eventAggregator) recordJoin(node string) { n.recordMove(node, &n.joined, n.left) }

// recordLeave notes that a node left the pool. A node that joined it before that was
// reported has done nothing.
func (n *eventAggregator) recordLeave(node string) { n.recordMove(node, &n.left, n.joined) }

func (n *eventAggregator) recordMove(node string, to *sets.Set[string], from sets.Set[string]) {
	n.fresh = true
	if from.Has(node) {
		from.Delete(node)
		return
	}
	if *to == nil {
		*to = sets.New[string]()
	}
	to.Insert(node)
}

// recordChange adds that something was written to a node.
func (n *eventAggregator) recordChange(node string, c plan.Change) {
	n.fresh = true
	switch c.Kind {
	case plan.Restored:
		appendKey(&n.restored, node, c.Key)
	case plan.Replaced:
		appendKey(&n.replaced, node, c.Key)
	default:
		if n.applied == nil {
			n.applied = sets.New[string]()
		}
		n.applied.Insert(node)
	}
}

// recordConflictingWriter adds that a node never comes to rest.
func (n *eventAggregator) recordConflictingWriter(node string) {
	n.fresh = true
	if n.conflicting == nil {
		n.conflicting = sets.New[string]()
	}
	n.conflicting.Insert(node)
}

// recordFailure adds that a node could not be written.
func (n *eventAggregator) recordFailure(node, message string) {
	n.fresh = true
	if n.failures == nil {
		n.failures = map[string]string{}
	}
	n.failures[node] = message
}

func appendKey(to *map[string][]setting.Key, node string, s setting.Key) {
	if *to == nil {
		*to = map[string][]setting.Key{}
	}
	(*to)[node] = append((*to)[node], s)
}

// take returns the news that are ripe now and forgets them, or after how long
// they will be.
func (n *eventAggregator) take(now time.Time) ([]Event, time.Duration) {
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
	ripe := n.last.Add(eventDelay)
	if latest := n.since.Add(maxEventDelay); latest.Before(ripe) {
		ripe = latest
	}
	if now.Before(ripe) {
		return nil, ripe.Sub(now)
	}
	told := n.events()
	*n = eventAggregator{}
	return told, 0
}

func (n *eventAggregator) events() []Event {
	var all []Event
	say := func(nodes []string, eventType, reason, action, format string, args ...any) {
		a := Event{Type: eventType, Reason: reason, Action: action, Note: fmt.Sprintf(format, args...)}
		if len(nodes) == 1 {
			a.Node = nodes[0]
		}
		all = append(all, a)
	}
	if len(n.joined) > 0 {
		say(sets.List(n.joined), corev1.EventTypeNormal, tidekeeperv1.EventNodesJoined, "Join", "%s joined the pool", FormatNodes(sets.List(n.joined)))
	}
	if len(n.left) > 0 {
		say(sets.List(n.left), corev1.EventTypeNormal, tidekeeperv1.EventNodesLeft, "Leave", "%s left the pool", FormatNodes(sets.List(n.left)))
	}
	if len(n.applied) > 0 {
		say(sets.List(n.applied), corev1.EventTypeNormal, tidekeeperv1.EventSettingsApplied, "Update", "brought %s up to date", FormatNodes(sets.List(n.applied)))
	}
	if len(n.replaced) > 0 {
		say(slices.Collect(maps.Keys(n.replaced)), corev1.EventTypeNormal, tidekeeperv1.EventValueReplaced, "Replace", "replaced values that others had set: %s", formatKeys(n.replaced))
	}
	if len(n.restored) > 0 {
		say(slices.Collect(maps.Keys(n.restored)), corev1.EventTypeWarning, tidekeeperv1.EventDriftCorrected, "Correct", "put back what others had changed: %s", formatKeys(n.restored))
	}
	if len(n.conflicting) > 0 {
		say(sets.List(n.conflicting), corev1.EventTypeWarning, tidekeeperv1.EventConflictingWriter, "Update",
			"somebody else, or another pool, undoes what this pool does to %s again and again; it is slowed down", FormatNodes(sets.List(n.conflicting)))
	}
	for _, message := range slices.Compact(slices.Sorted(maps.Values(n.failures))) {
		var nodes []string
		for node, m := range n.failures {
			if m == message {
				nodes = append(nodes, node)
			}
		}
		slices.Sort(nodes)
		say(nodes, corev1.EventTypeWarning, tidekeeperv1.EventNodePatchFailed, "Update", "could not update %s: %s", FormatNodes(nodes), message)
		if len(all) > 8 {
			break
		}
	}
	return all
}

// A note of an event has at most 1024 bytes, and the name of a node up to 253, a key
// up to 317. So lists end after five, or earlier if these are long.
const (
	maxListed       = 5
	maxListLength   = 600
	maxReasonLength = 300
)

// FormatNodes names nodes: all of a few, some of many.
func FormatNodes(names []string) string {
	if len(names) == 1 {
		return "node " + names[0]
	}
	return fmt.Sprintf("%d nodes (%s)", len(names), formatList(names))
}

// formatKeys names what was changed on which node: all of a few, some of many.
func formatKeys(slots map[string][]setting.Key) string {
	var all []string
	for node, on := range slots {
		for _, s := range on {
			all = append(all, fmt.Sprintf("%s on node %s", s, node))
		}
	}
	slices.SortFunc(all, cmp.Compare)
	return formatList(slices.Compact(all))
}

// formatList joins the first of some words, and says how many more there are.
func formatList(words []string) string {
	shown, length := 0, 0
	for shown < min(len(words), maxListed) && (shown == 0 || length+len(words[shown]) <= maxListLength) {
		length += len(words[shown]) + len(", ")
		shown++
	}
	text := strings.Join(words[:shown], ", ")
	if shown < len(words) {
		text += fmt.Sprintf(" and %d more", len(words)-shown)
	}
	return text
}
