// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/maintenance/selection"
	"tidekeeper.dev/tidekeeper/internal/schedule"
)

// placeInterval is the interval at which the drain of a node is considered again while its pods do
// not fit on other nodes.
const placeInterval = 30 * time.Second

// starter begins the drains of nodes, within the limits of the spec.
type starter struct {
	state   *state
	windows schedule.Windows
	// waits explains why no further drain begins; nil if there is no obstacle.
	waits *waiting
	// open is true if drains may begin now, apart from the limits of unavailable nodes and the room
	// on other nodes.
	open bool
}

// start begins the drains of as many nodes as the limits of unavailable nodes allow, by recording
// the drains in the status.
func (d *starter) start() {
	left := d.state.left()
	if d.waits = d.blocked(len(left)); d.waits != nil || len(left) == 0 {
		return
	}
	d.open = true
	all := map[string]bool{}
	for _, name := range d.state.Selected {
		all[name] = true
	}
	for name := range d.state.status.Nodes {
		all[name] = true
	}
	limit := selection.Limit(d.state.spec, len(all))
	unavailable, byZone := []string{}, map[string]int{}
	for _, name := range sorted(all) {
		if d.isUnavailable(name) {
			unavailable = append(unavailable, name)
			byZone[d.state.Nodes[name].Zone]++
		}
	}
	noPlace := ""
	for _, name := range left {
		n := d.state.Nodes[name]
		if d.isUnavailable(name) {
			continue
		}
		if earlier := d.earlierGroup(n.Group, left); earlier != "" {
			d.waitFor(tidekeeperv1.ReasonMaintaining, earlier+" comes before the nodes of the next pool")
			break
		}
		if len(unavailable) >= limit {
			d.waitFor(tidekeeperv1.ReasonMaxUnavailable, fmt.Sprintf("unavailable: %s; the limit is %d", namesText(unavailable), limit))
			break
		}
		if most := int(d.state.spec.MaxUnavailablePerZone); most > 0 && n.Zone != "" && byZone[n.Zone] >= most {
			d.waitFor(tidekeeperv1.ReasonMaxUnavailable, fmt.Sprintf("%d nodes of the zone %s are unavailable", byZone[n.Zone], n.Zone))
			continue
		}
		if (d.state.spec.RequirePlace == nil || *d.state.spec.RequirePlace) && !d.state.HasPlace(name, d.state.running()) {
			if noPlace == "" {
				noPlace = name
			}
			continue
		}
		now := metav1.NewTime(d.state.Now.Truncate(time.Second))
		d.state.set(name, tidekeeperv1.NodeProgress{UID: n.UID, Phase: tidekeeperv1.NodeDraining, Since: now, StartTime: now, Reason: tidekeeperv1.ReasonPodsLeaving})
		unavailable = append(unavailable, name)
		byZone[n.Zone]++
	}
	if noPlace != "" {
		d.state.wake(d.state.Now.Add(placeInterval))
		if d.waits == nil {
			d.waitFor(tidekeeperv1.ReasonNoPlace, "the other nodes have no room for the pods of "+noPlace)
		}
	}
	if d.waits == nil && len(d.state.left()) > 0 && !d.state.drainsRun() {
		d.waitFor(tidekeeperv1.ReasonMaxUnavailable, "not available: "+namesText(d.state.left()))
	}
}

// blocked returns the reason why no drain of any node may begin, such as a Freeze or the failure
// limit; nil if there is none. left is the number of nodes whose drain has not begun.
func (d *starter) blocked(left int) *waiting {
	switch {
	case d.state.spec.Suspend:
		return &waiting{tidekeeperv1.ReasonSuspended, "suspended: no drain begins"}
	case d.state.failures()-d.state.status.ToleratedFailures >= max(1, d.state.spec.FailureLimit):
		return &waiting{tidekeeperv1.ReasonFailureLimit, fmt.Sprintf("%d nodes have failed: no further drain begins until the spec is edited", d.state.failures()-d.state.status.ToleratedFailures)}
	case d.state.status.RoundTime == nil:
		return &waiting{tidekeeperv1.ReasonScheduled, "the first round has not begun"}
	case left == 0:
		return nil
	case d.state.Frozen != "":
		d.state.wake(d.state.FrozenUntil)
		return &waiting{tidekeeperv1.ReasonFrozen, d.state.Frozen}
	}
	opens, ok := d.windows.OpensAt(d.state.Now)
	switch {
	case !ok:
		return &waiting{tidekeeperv1.ReasonWindowClosed, "no window will open"}
	case opens.After(d.state.Now):
		d.state.wake(opens)
		return &waiting{tidekeeperv1.ReasonWindowClosed, "the next window opens at " + opens.UTC().Format(time.RFC3339)}
	}
	return nil
}

// isUnavailable reports whether the named node counts towards the limits of unavailable nodes.
func (d *starter) isUnavailable(name string) bool {
	n, exists := d.state.Nodes[name]
	p, begun := d.state.status.Nodes[name]
	if begun && IsRunning(p) {
		return true
	}
	return exists && IsUnavailable(n)
}

// IsUnavailable reports whether a node that is not in maintenance counts towards the limits of
// unavailable nodes, for example because it is not ready or not schedulable.
func IsUnavailable(n Node) bool {
	return !n.Ready || n.Unschedulable || n.Foreign != "" || n.CordonedFor != "" || n.Deleting
}

// earlierGroup returns a node that belongs to an earlier pool in spec.nodes.pools than the pool
// with index `group`, and whose maintenance has not ended; "" if there is none. left lists the
// nodes whose drain has not begun.
func (d *starter) earlierGroup(group int, left []string) string {
	for _, name := range left {
		if _, begun := d.state.status.Nodes[name]; !begun && d.state.Nodes[name].Group < group {
			return name
		}
	}
	for _, name := range d.state.Selected {
		if p, begun := d.state.status.Nodes[name]; begun && d.state.Nodes[name].Group < group && p.Phase != tidekeeperv1.NodeFailed && IsRunning(p) {
			return name
		}
	}
	return ""
}

func (d *starter) waitFor(reason, message string) {
	if d.waits == nil {
		d.waits = &waiting{reason, message}
	}
}

// mostNames is the maximum number of node names in a message.
const mostNames = 3

func namesText(names []string) string {
	if len(names) > mostNames {
		return strings.Join(names[:mostNames], ", ") + fmt.Sprintf(" and %d more", len(names)-mostNames)
	}
	return strings.Join(names, ", ")
}
