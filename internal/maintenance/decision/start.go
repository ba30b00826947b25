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
)

// placeInterval is the interval at which a node is evaluated again while other nodes have no room
// for its pods.
const placeInterval = 30 * time.Second

// starter begins drains.
type starter struct{ *decider }

// start begins as many drains as the limits allow.
func (d *starter) start() {
	left := d.left()
	if d.waits = d.blocked(len(left)); d.waits != nil || len(left) == 0 {
		return
	}
	all := map[string]bool{}
	for _, name := range d.Selected {
		all[name] = true
	}
	for name := range d.status.Nodes {
		all[name] = true
	}
	limit := selection.Limit(d.spec, len(all))
	unavailable, byZone := []string{}, map[string]int{}
	for _, name := range sorted(all) {
		if d.isUnavailable(name) {
			unavailable = append(unavailable, name)
			byZone[d.Nodes[name].Zone]++
		}
	}
	noPlace := ""
	for _, name := range left {
		n := d.Nodes[name]
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
		if most := int(d.spec.MaxUnavailablePerZone); most > 0 && n.Zone != "" && byZone[n.Zone] >= most {
			d.waitFor(tidekeeperv1.ReasonMaxUnavailable, fmt.Sprintf("%d nodes of the zone %s are unavailable", byZone[n.Zone], n.Zone))
			continue
		}
		if (d.spec.RequirePlace == nil || *d.spec.RequirePlace) && !d.HasPlace(name, d.running()) {
			if noPlace == "" {
				noPlace = name
			}
			continue
		}
		now := metav1.NewTime(d.Now.Truncate(time.Second))
		d.set(name, tidekeeperv1.NodeProgress{UID: n.UID, Phase: tidekeeperv1.NodeDraining, Since: now, StartTime: now, Reason: tidekeeperv1.ReasonPodsLeaving})
		unavailable = append(unavailable, name)
		byZone[n.Zone]++
	}
	if noPlace != "" {
		d.wake(d.Now.Add(placeInterval))
		if d.waits == nil {
			d.waitFor(tidekeeperv1.ReasonNoPlace, "the other nodes have no room for the pods of "+noPlace)
		}
	}
	if d.waits == nil && len(d.left()) > 0 && !d.drainsRun() {
		d.waitFor(tidekeeperv1.ReasonMaxUnavailable, "not available: "+namesText(d.left()))
	}
}

// blocked returns the reason why no drain may begin, regardless of the state of the nodes; nil if
// there is none.
func (d *starter) blocked(left int) *waiting {
	switch {
	case d.spec.Suspend:
		return &waiting{tidekeeperv1.ReasonSuspended, "suspended: no drain begins"}
	case d.failures()-d.status.ToleratedFailures >= max(1, d.spec.FailureLimit):
		return &waiting{tidekeeperv1.ReasonFailureLimit, fmt.Sprintf("%d nodes have failed: no further drain begins until the spec is edited", d.failures()-d.status.ToleratedFailures)}
	case d.status.RoundTime == nil:
		return &waiting{tidekeeperv1.ReasonScheduled, "the first round has not begun"}
	case left == 0:
		return nil
	case d.Frozen != "":
		d.wake(d.FrozenUntil)
		return &waiting{tidekeeperv1.ReasonFrozen, d.Frozen}
	}
	opens, ok := d.windows.OpensAt(d.Now)
	switch {
	case !ok:
		return &waiting{tidekeeperv1.ReasonWindowClosed, "no window will open"}
	case opens.After(d.Now):
		d.wake(opens)
		return &waiting{tidekeeperv1.ReasonWindowClosed, "the next window opens at " + opens.UTC().Format(time.RFC3339)}
	}
	return nil
}

// isUnavailable reports whether a node counts towards the limits.
func (d *starter) isUnavailable(name string) bool {
	n, exists := d.Nodes[name]
	p, begun := d.status.Nodes[name]
	if begun && IsRunning(p) {
		return true
	}
	return exists && IsUnavailable(n)
}

// IsUnavailable reports whether a node that is not in maintenance counts towards the limits.
func IsUnavailable(n Node) bool {
	return !n.Ready || n.Unschedulable || n.Foreign != "" || n.CordonedFor != "" || n.Deleting
}

// earlierGroup returns a node in an earlier pool whose maintenance is not complete; "" if there is
// none.
func (d *starter) earlierGroup(group int, left []string) string {
	for _, name := range left {
		if _, begun := d.status.Nodes[name]; !begun && d.Nodes[name].Group < group {
			return name
		}
	}
	for _, name := range d.Selected {
		if p, begun := d.status.Nodes[name]; begun && d.Nodes[name].Group < group && p.Phase != tidekeeperv1.NodeFailed && IsRunning(p) {
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
