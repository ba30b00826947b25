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

// Events are held back until nothing has been added for eventDelay, but for at most
// maxEventDelay, so that forty nodes that join together result in a single event.
const (
	eventDelay    = time.Second
	maxEventDelay = 5 * time.Second
)

// eventAggregator collects the changes to a pool that have not been reported as events yet. The
// zero value is empty.
type eventAggregator struct {
	joined, left sets.Set[string]
	// applied are the nodes to which settings of the pool were applied.
	applied sets.Set[string]
	// restored and replaced are the keys, by node, whose values other clients had set or
	// changed.
	restored, replaced map[string][]setting.Key
	// conflicting are the nodes on which another client, or another pool, reverts the pool's
	// changes.
	conflicting sets.Set[string]
	// failures are error messages, by node.
	failures map[string]string

	// since is the time of the first addition, last the time of the latest. Only take knows the
	// time: it sets both if added is true.
	since, last time.Time
	added       bool
}

// Event is an event to record.
type Event struct {
	Type, Reason, Action, Note string
	// Node is the node that the event is about; empty if there are several.
	Node string
}

// recordJoin records that a node joined the pool. If the node left before and that was not
// reported yet, neither is reported.
func (n *eventAggregator) recordJoin(node string) { n.recordMove(node, &n.joined, n.left) }

// recordLeave records that a node left the pool. If the node joined before and that was not
// reported yet, neither is reported.
func (n *eventAggregator) recordLeave(node string) { n.recordMove(node, &n.left, n.joined) }

func (n *eventAggregator) recordMove(node string, to *sets.Set[string], from sets.Set[string]) {
	n.added = true
	if from.Has(node) {
		from.Delete(node)
		return
	}
	if *to == nil {
		*to = sets.New[string]()
	}
	to.Insert(node)
}

// recordChange records that a setting was written to a node.
func (n *eventAggregator) recordChange(node string, c plan.Change) {
	n.added = true
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

// recordConflictingWriter records that the pool's changes to a node keep being reverted.
func (n *eventAggregator) recordConflictingWriter(node string) {
	n.added = true
	if n.conflicting == nil {
		n.conflicting = sets.New[string]()
	}
	n.conflicting.Insert(node)
}

// recordFailure records that a node could not be patched.
func (n *eventAggregator) recordFailure(node, message string) {
	n.added = true
	if n.failures == nil {
		n.failures = map[string]string{}
	}
	n.failures[node] = message
}

func appendKey(to *map[string][]setting.Key, node string, key setting.Key) {
	if *to == nil {
		*to = map[string][]setting.Key{}
	}
	(*to)[node] = append((*to)[node], key)
}

// take returns the events that are due and forgets them, or the time until they are due.
func (n *eventAggregator) take(now time.Time) ([]Event, time.Duration) {
	if n.added {
		n.added = false
		n.last = now
		if n.since.IsZero() {
			n.since = now
		}
	}
	if n.since.IsZero() {
		return nil, 0
	}
	due := n.last.Add(eventDelay)
	if latest := n.since.Add(maxEventDelay); latest.Before(due) {
		due = latest
	}
	if now.Before(due) {
		return nil, due.Sub(now)
	}
	events := n.events()
	*n = eventAggregator{}
	return events, 0
}

func (n *eventAggregator) events() []Event {
	var all []Event
	add := func(nodes []string, eventType, reason, action, format string, args ...any) {
		e := Event{Type: eventType, Reason: reason, Action: action, Note: fmt.Sprintf(format, args...)}
		if len(nodes) == 1 {
			e.Node = nodes[0]
		}
		all = append(all, e)
	}
	if len(n.joined) > 0 {
		add(sets.List(n.joined), corev1.EventTypeNormal, tidekeeperv1.EventNodesJoined, "Join", "%s joined the pool", FormatNodes(sets.List(n.joined)))
	}
	if len(n.left) > 0 {
		add(sets.List(n.left), corev1.EventTypeNormal, tidekeeperv1.EventNodesLeft, "Leave", "%s left the pool", FormatNodes(sets.List(n.left)))
	}
	if len(n.applied) > 0 {
		add(sets.List(n.applied), corev1.EventTypeNormal, tidekeeperv1.EventSettingsApplied, "Update", "updated %s to match the pool's spec", FormatNodes(sets.List(n.applied)))
	}
	if len(n.replaced) > 0 {
		add(slices.Collect(maps.Keys(n.replaced)), corev1.EventTypeNormal, tidekeeperv1.EventValueReplaced, "Replace", "replaced values that other clients had set: %s", formatKeys(n.replaced))
	}
	if len(n.restored) > 0 {
		add(slices.Collect(maps.Keys(n.restored)), corev1.EventTypeWarning, tidekeeperv1.EventDriftCorrected, "Correct", "restored settings that other clients had changed: %s", formatKeys(n.restored))
	}
	if len(n.conflicting) > 0 {
		add(sets.List(n.conflicting), corev1.EventTypeWarning, tidekeeperv1.EventConflictingWriter, "Update",
			"another client or another pool keeps reverting this pool's changes to %s; updates are throttled", FormatNodes(sets.List(n.conflicting)))
	}
	for _, message := range slices.Compact(slices.Sorted(maps.Values(n.failures))) {
		var nodes []string
		for node, m := range n.failures {
			if m == message {
				nodes = append(nodes, node)
			}
		}
		slices.Sort(nodes)
		add(nodes, corev1.EventTypeWarning, tidekeeperv1.EventNodePatchFailed, "Update", "could not update %s: %s", FormatNodes(nodes), message)
		if len(all) > 8 {
			break
		}
	}
	return all
}

// The note of an event is limited to 1,024 bytes, the name of a node to 253, and a key to 317.
// So lists end after five entries, or earlier if the entries are long.
const (
	maxListed       = 5
	maxListLength   = 600
	maxReasonLength = 300
)

// FormatNodes names the nodes, or the first few if there are many.
func FormatNodes(names []string) string {
	if len(names) == 1 {
		return "node " + names[0]
	}
	return fmt.Sprintf("%d nodes (%s)", len(names), formatList(names))
}

// formatKeys names the keys, by node, or the first few if there are many.
func formatKeys(byNode map[string][]setting.Key) string {
	var all []string
	for node, keys := range byNode {
		for _, key := range keys {
			all = append(all, fmt.Sprintf("%s on node %s", key, node))
		}
	}
	slices.SortFunc(all, cmp.Compare)
	return formatList(slices.Compact(all))
}

// formatList joins the first few words, and appends the number of words left out.
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
