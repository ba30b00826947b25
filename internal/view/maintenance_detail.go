// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package view

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/nodepool/plan"
	"tidekeeper.dev/tidekeeper/internal/schedule"
)

// MaintenanceDetail is the detailed description of a NodeMaintenance.
type MaintenanceDetail struct {
	Maintenance `json:",inline"`
	// Selects describes the selected nodes. Schedule and Windows describe when rounds and drains
	// begin.
	Selects  string   `json:"selects"`
	Schedule string   `json:"schedule,omitempty"`
	Windows  []string `json:"windows,omitempty"`
	TimeZone string   `json:"timeZone,omitempty"`
	// Limit is the maximum number of nodes that may be unavailable at a time. ZoneLimit is the
	// maximum number in each zone; 0 means no limit.
	Limit     int `json:"limit"`
	ZoneLimit int `json:"zoneLimit,omitempty"`
	// Begun is true if Members are the nodes of a round that has begun, and false if they are the
	// nodes of the next round.
	Begun bool `json:"begun"`
	// Held is the reason why no drain of a node begins now. It is nil if drains may begin, or if no
	// node waits.
	Held    *Status          `json:"held,omitempty"`
	Members []MaintainedNode `json:"members"`
	Events  []Event          `json:"events"`
}

// MaintenanceDetailOf returns the details of a NodeMaintenance and its round as of now.
func MaintenanceDetailOf(m *tidekeeperv1.NodeMaintenance, r MaintenanceRound, events []corev1.Event, now time.Time) MaintenanceDetail {
	d := MaintenanceDetail{
		Maintenance: MaintenanceOf(m, now), Selects: selectsText(&m.Spec.Nodes), Schedule: string(m.Spec.Schedule), TimeZone: m.Spec.TimeZone,
		Limit: r.Input.Limit, ZoneLimit: r.Input.ZoneLimit, Begun: r.Begun, Members: r.Nodes, Events: Events(events),
	}
	for _, w := range m.Spec.Windows {
		d.Windows = append(d.Windows, windowText(w, m.Spec.TimeZone))
	}
	if len(r.Input.Waiting) > 0 {
		d.Held = r.Held
	}
	if d.Members == nil {
		d.Members = []MaintainedNode{}
	}
	return d
}

// windowText describes a window, such as "at 22:00 for 4h".
func windowText(w tidekeeperv1.RestartWindow, zone string) string {
	when := string(w.Schedule)
	if opens, err := schedule.Parse(when, zone); err == nil {
		when = opens.Describe()
	}
	return when + " for " + FormatDuration(time.Duration(w.DurationSeconds)*time.Second)
}

// selectsText describes the nodes that a NodeMaintenance selects.
func selectsText(n *tidekeeperv1.MaintenanceNodes) string {
	var text string
	switch {
	case len(n.Pools) > 0:
		text = "nodes of " + oneOrMore(len(n.Pools), "pool") + " " + strings.Join(n.Pools, ", then ")
	case len(n.Names) > 0:
		text = strings.Join(n.Names, ", ")
	case n.Selector != nil:
		text = "nodes with the selected labels"
		if selector, err := plan.Selector(&tidekeeperv1.NodePool{Spec: tidekeeperv1.NodePoolSpec{Selector: n.Selector}}); err == nil {
			text = "nodes with " + selector.String()
		}
	}
	if o := n.Outdated; o != nil {
		var which []string
		if o.KubeletVersionNot != "" {
			which = append(which, "whose kubelet is not "+o.KubeletVersionNot)
		}
		if o.MinAgeSeconds > 0 {
			which = append(which, "that are at least "+ageText(time.Duration(o.MinAgeSeconds)*time.Second)+" old")
		}
		text += ", " + strings.Join(which, ", or ")
	}
	return text
}

// ageText formats an age in days if it is a whole number of days, and in smaller units otherwise.
func ageText(age time.Duration) string {
	if day := 24 * time.Hour; age%day == 0 {
		return fmt.Sprintf("%dd", age/day)
	}
	return FormatDuration(age)
}
