// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/term"
	"tidekeeper.dev/tidekeeper/internal/view"
)

// mostUnderway is the maximum number of nodes named in the row of a NodeMaintenance.
const mostUnderway = 3

// inMaintenance is the state that the pages show for a node that a NodeMaintenance has cordoned.
const inMaintenance = "in maintenance"

// maintenanceRow is a table row that shows a NodeMaintenance.
type maintenanceRow struct {
	view.Maintenance
	// Key is the name of the NodeMaintenance. On a page about all clusters, it is prefixed with the
	// cluster's context.
	Key string
	// Progress is the number of nodes whose maintenance is complete, out of all nodes of the
	// current or last round, such as 3/5. It is "-" if the numbers are unknown.
	Progress string
	// Underway lists nodes of the round that are being maintained or have failed. More is the
	// number of such nodes that are not listed.
	Underway []underwayNode
	More     int
	Next     shownTime
}

// underwayNode shows a node that has failed or is being maintained.
type underwayNode struct {
	view.MaintainedNode
	Since shownTime
	Is    view.Severity
}

func (r *request) maintenances() []*tidekeeperv1.NodeMaintenance {
	return listOf[*tidekeeperv1.NodeMaintenance](r.snapshot, kindMaintenances)
}

// maintenanceRows returns a row for each NodeMaintenance, most severe first.
func (r *request) maintenanceRows() []maintenanceRow {
	var rows []maintenanceRow
	for _, m := range r.maintenances() {
		row := maintenanceRow{Maintenance: view.MaintenanceOf(m, r.now()), Key: m.Name, Progress: "-", Next: shownTime{Text: "–"}}
		if row.Known {
			row.Progress = ofAll(int(row.Done), int(row.Nodes))
		}
		if next := row.NextRound; next != nil {
			row.Next = timeText(*next, r.local(), term.Coming(*next, r.now(), r.local()))
		}
		for _, n := range view.MaintainedNodes(m) {
			switch {
			case !n.Running() && n.Phase != tidekeeperv1.NodeFailed:
			case len(row.Underway) == mostUnderway:
				row.More++
			default:
				row.Underway = append(row.Underway, r.underway(n))
			}
		}
		rows = append(rows, row)
	}
	sortMaintenances(rows)
	return rows
}

func (r *request) underway(n view.MaintainedNode) underwayNode {
	return underwayNode{MaintainedNode: n, Since: ago(*n.Since, r.now(), r.local()), Is: n.Severity()}
}

func sortMaintenances(rows []maintenanceRow) {
	slices.SortStableFunc(rows, func(a, b maintenanceRow) int {
		return cmp.Or(cmp.Compare(badness[b.Status.Severity], badness[a.Status.Severity]), cmp.Compare(a.Key, b.Key))
	})
}

// maintenancePanel is the line in a node's panel about the maintenance of the node.
type maintenancePanel struct {
	// Name is the name of the NodeMaintenance; "" if it is unknown.
	Name string
	// Node is the node's progress in the maintenance. It is nil if the progress is unknown. Unknown
	// explains why NodeMaintenances could not be read, or is "" if they could be read.
	Node    *underwayNode
	Unknown string
}

// maintenancePanelOf returns the maintenance of a node. It returns nil if the node is not being
// maintained.
func (r *request) maintenancePanelOf(node *corev1.Node) *maintenancePanel {
	uid, cordoned := node.Annotations[tidekeeperv1.CordonedForMaintenanceAnnotation]
	name, drained := node.Annotations[tidekeeperv1.DrainedForMaintenanceAnnotation]
	if !cordoned && !drained {
		return nil
	}
	p := &maintenancePanel{Name: name, Unknown: r.snapshot.problem(kindMaintenances)}
	for _, m := range r.maintenances() {
		if m.Name != name && string(m.UID) != uid {
			continue
		}
		p.Name = m.Name
		for _, n := range view.MaintainedNodes(m) {
			if n.Name == node.Name {
				shown := r.underway(n)
				p.Node = &shown
			}
		}
	}
	return p
}
