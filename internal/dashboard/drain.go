// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"tidekeeper.dev/tidekeeper/internal/capacity"
	"tidekeeper.dev/tidekeeper/internal/drain"
	"tidekeeper.dev/tidekeeper/internal/view"
)

// Drain describes the pods that block draining a node. It does not include pods that fit on no
// other node.
type Drain struct {
	// Pods is the number of pods that a drain would move or delete.
	Pods     int
	Blockers []drain.Blocker
	// Problem explains why the blocking pods are unknown, or is "" if they are known. NoVolumes
	// explains why the pods' volumes are not evaluated, or is "" if the volumes are evaluated.
	Problem, NoVolumes string
}

// drain returns the pods that block draining a node. It returns false while the lookup of these
// pods is running.
func (q *questions) drain(node *corev1.Node, others []*corev1.Node) (Drain, bool) {
	return look(q, &q.drains, node.Name, func(ctx context.Context) Drain { return q.cluster.Drain(ctx, node, others, q.now) })
}

// drainPanel is the section of the node panel that shows the pods that block draining the node.
type drainPanel struct {
	Pods int
	// Unknown explains why the blocking pods are unknown, or is "" if they are known. NoVolumes
	// explains why the pods' volumes are not evaluated, or is "" if the volumes are evaluated.
	Unknown, NoVolumes string
	Rows               []drainRow
	// More is the number of blocking pods that the table omits.
	More    int
	AtMost  []string
	Command string
}

// drainRow is a table row that shows pods of a workload that block a drain.
type drainRow struct {
	drain.Blocker
	Name string // name of the workload, with its namespace
	// Since is the time since which the pods block the drain, or nil if it is unknown.
	Since *shownTime
}

// drainPanelOf returns the panel with the pods that block draining a node. loss lists the node's
// pods that do not fit on other nodes, which also block the drain.
func (r *request) drainPanelOf(node *corev1.Node, loss capacity.Loss) *drainPanel {
	p := &drainPanel{Command: r.frame.links.command([]string{"pools", "blockers", "--node", node.Name})}
	found, known := r.asks.drain(node, r.snapshot.nodes())
	if !known {
		found.Problem = errNoAnswer.Error()
	}
	if p.Unknown = found.Problem; p.Unknown != "" {
		return p
	}
	all := view.NodeBlockers{Node: node.Name, Pods: found.Pods, Blockers: append([]drain.Blocker{}, found.Blockers...)}
	all.AddLoss(loss)
	p.Pods, p.NoVolumes, p.AtMost = all.Pods, found.NoVolumes, all.AtMost
	for _, b := range all.Blockers {
		if len(p.Rows) == mostPodRows {
			p.More++
			continue
		}
		row := drainRow{Blocker: b, Name: b.Namespace + "/" + b.Workload}
		if b.Since != nil {
			since := ago(b.Since.Time, r.now(), r.local())
			row.Since = &since
		}
		p.Rows = append(p.Rows, row)
	}
	return p
}
