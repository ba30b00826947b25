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

// eventDelay is the time without new changes after which the collected changes are reported as
// events. maxEventDelay limits the total delay. As a result, forty nodes that join at the same time
// cause a single event.
const (
	eventDelay    = time.Second
	maxEventDelay = 5 * time.Second
)

// eventAggregator collects changes to a pool and its nodes until they are reported as events. The
// zero value is empty.
type eventAggregator struct {
	joined, left sets.Set[string]
	// applied is the set of nodes to which the pool's settings were added or updated.
	applied sets.Set[string]
	// restored and replaced map node names to the keys of settings that were written for the pool.
	// restored contains keys whose value from this pool had been changed or removed by another
	// client. replaced contains keys for which the node had a value that no pool had set.
	restored, replaced map[string][]setting.Key
	// conflicting is the set of nodes on which another client or another pool keeps reverting the
	// pool's changes.
	conflicting sets.Set[string]
	// failures maps the names of nodes that could not be patched to error messages.
	failures map[string]string

	// since is the time of the first collected change; last is the time of the latest. added is set
	// by each change, and makes the next call of take update these times.
	since, last time.Time
	added       bool
}

// Event is a Kubernetes event to be recorded for a pool.
type Event struct {
	Type, Reason, Action, Note string
	// Node is the node that the event concerns. It is empty if the event concerns several nodes.
	Node string
}

// recordJoin records that a node joined the pool. If the node's earlier departure has not been
// reported yet, the two cancel out and neither is reported.
func (n *eventAggregator) recordJoin(node string) { n.recordMove(node, &n.joined, n.left) }

// recordLeave records that a node left the pool. If the node's earlier arrival has not been
// reported yet, the two cancel out and neither is reported.
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

// recordChange records that a setting of a node was changed.
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

// recordConflictingWriter records that another client or another pool repeatedly reverts the pool's
// changes to a node.
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

// take removes and returns the events that are due. If none are due yet, it returns the time until
// the collected changes are due as events, or 0 if there are no changes.
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

// maxListed is the maximum number of entries of a list in an event's note. maxListLength is the
// maximum length of a list with several entries, and maxReasonLength that of an error message, both
// in bytes. The API server limits a note to 1,024 bytes, whereas a node name may have 253 bytes,
// and a label key 317.
const (
	maxListed       = 5
	maxListLength   = 600
	maxReasonLength = 300
)

// FormatNodes formats a list of node names for a message, shortened if there are many.
func FormatNodes(names []string) string {
	if len(names) == 1 {
		return "node " + names[0]
	}
	return fmt.Sprintf("%d nodes (%s)", len(names), formatList(names))
}

// formatKeys formats setting keys, and the nodes that they are on, for a message. A long list is
// shortened.
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

// formatList joins the first entries of a list, and appends the number of entries that it omits.
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
