// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package view

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
)

// Pool summarizes a NodePool.
type Pool struct {
	Name       string  `json:"name"`
	Status     Status  `json:"status"`
	Nodes      int32   `json:"nodes"`
	ReadyNodes int32   `json:"readyNodes"`
	Levels     []Level `json:"levels"` // sorted by resource name
	// LargestFits lists the largest pods that could start now, according to the pool's status.
	LargestFits []tidekeeperv1.LargestFit `json:"largestFits,omitempty"`
	// Headroom is the pool's condition Headroom, which reports whether the pods of a lost node or
	// zone would fit elsewhere. It is nil if the pool lacks the condition.
	Headroom *Status `json:"headroom,omitempty"`
	// Drainable is the pool's condition Drainable, which reports whether each node of the pool
	// could be drained. It is nil if the pool lacks the condition.
	Drainable  *Status   `json:"drainable,omitempty"`
	Conflict   string    `json:"conflict,omitempty"`
	Conflicted bool      `json:"conflicted"`
	Created    time.Time `json:"created"`
}

// Level is the requested percentage of a resource on a node, or on all nodes of a pool.
type Level struct {
	Resource    string `json:"resource"`
	Percent     int32  `json:"percent"`
	Requested   string `json:"requested,omitempty"`
	Allocatable string `json:"allocatable,omitempty"`
}

// Severity returns a warning or worse for a high level, because a nearly full pool cannot take the
// pods of a failed node.
func (l Level) Severity() Severity {
	switch {
	case l.Percent >= 95:
		return Bad
	case l.Percent >= 80:
		return Warning
	default:
		return Neutral
	}
}

// LevelOf returns the level of a resource. It returns false if the level is unknown.
func LevelOf(levels []Level, name corev1.ResourceName) (Level, bool) {
	i := slices.IndexFunc(levels, func(l Level) bool { return l.Resource == string(name) })
	if i < 0 {
		return Level{}, false
	}
	return levels[i], true
}

// PoolOf returns a pool's summary as of now.
func PoolOf(p *tidekeeperv1.NodePool, now time.Time) Pool {
	shown := Pool{
		Name: p.Name, Status: poolStatus(p, now), Nodes: p.Status.NodeCount, ReadyNodes: p.Status.ReadyNodes,
		Levels: LevelsOf(p.Status.RequestedPercent, p.Status.Requested, p.Status.Allocatable), LargestFits: p.Status.LargestFits, Created: p.CreationTimestamp.Time,
	}
	if c := meta.FindStatusCondition(p.Status.Conditions, tidekeeperv1.ConditionConflicted); c != nil && c.Status == metav1.ConditionTrue {
		shown.Conflicted, shown.Conflict = true, c.Message
	}
	shown.Headroom = answerOf(p, tidekeeperv1.ConditionHeadroom, Bad)
	// The severity is only a warning, because pods that a drain could not remove still run
	// normally.
	shown.Drainable = answerOf(p, tidekeeperv1.ConditionDrainable, Warning)
	return shown
}

// answerOf returns the pool's condition of the given type, or nil if the pool lacks the condition
// because its spec does not enable it. `no` is the severity for the condition status False.
func answerOf(p *tidekeeperv1.NodePool, conditionType string, no Severity) *Status {
	c := meta.FindStatusCondition(p.Status.Conditions, conditionType)
	if c == nil {
		return nil
	}
	s := &Status{Reason: c.Reason, Message: c.Message, Severity: Neutral}
	switch c.Status {
	case metav1.ConditionTrue:
		s.Severity = Good
	case metav1.ConditionFalse:
		s.Severity = no
	}
	return s
}

// LevelsOf combines the requested percentage and the amounts of each resource. The levels are
// sorted by resource name.
func LevelsOf(percent map[corev1.ResourceName]int32, requested, allocatable corev1.ResourceList) []Level {
	shown := []Level{}
	for _, name := range slices.Sorted(maps.Keys(percent)) {
		l := Level{Resource: string(name), Percent: percent[name]}
		if of, ok := allocatable[name]; ok {
			amount := requested[name]
			l.Requested, l.Allocatable = amount.String(), of.String()
		}
		shown = append(shown, l)
	}
	return shown
}

// poolStatus returns the pool's status from its condition Ready. A pool with a deletion timestamp
// is shown as being deleted, even if no manager is running to update the condition.
func poolStatus(p *tidekeeperv1.NodePool, now time.Time) Status {
	ready := meta.FindStatusCondition(p.Status.Conditions, tidekeeperv1.ConditionReady)
	switch {
	case !p.DeletionTimestamp.IsZero():
		return deletingStatus(p, ready, now)
	case ready == nil:
		return notReconciled
	}
	s := Status{Reason: ready.Reason, Message: ready.Message, Severity: Bad}
	switch {
	case ready.Reason == tidekeeperv1.ReasonHealthy:
		s.Severity = Good
	case ready.Status == metav1.ConditionTrue, ready.Reason == tidekeeperv1.ReasonOutOfSync, ready.Reason == tidekeeperv1.ReasonDeleting:
		s.Severity = Warning
	}
	return s
}

// deletingStatus returns the status of an object that is being deleted. Its message states since
// when the object is being deleted, and what the deletion waits for. ready is the condition Ready
// of the object, or nil.
func deletingStatus(o metav1.Object, ready *metav1.Condition, now time.Time) Status {
	s := Status{Reason: tidekeeperv1.ReasonDeleting, Severity: Warning}
	s.Message = fmt.Sprintf("deletion requested %s ago", duration.HumanDuration(max(0, now.Sub(o.GetDeletionTimestamp().Time))))
	switch {
	case ready != nil && ready.Reason == tidekeeperv1.ReasonDeleting:
		s.Message += ": " + ready.Message
	case len(o.GetFinalizers()) > 0:
		s.Message += ", waiting for the " + oneOrMore(len(o.GetFinalizers()), "finalizer") + " " + strings.Join(o.GetFinalizers(), ", ") + "; is a manager running?"
	}
	return s
}

func oneOrMore(n int, noun string) string {
	if n == 1 {
		return noun
	}
	return noun + "s"
}
