// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package view

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/freeze/period"
)

// maintainedNode returns a ready node that is 40 days old. Its name has the format
// zone-pool-number, and determines its zone and pool.
func maintainedNode(name string, changes ...func(*corev1.Node)) *corev1.Node {
	parts := strings.Split(name, "-")
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{
		Name: name, CreationTimestamp: metav1.NewTime(noon.AddDate(0, 0, -40)),
		Labels: map[string]string{corev1.LabelTopologyZone: parts[0], tidekeeperv1.RoleLabelPrefix + parts[1]: ""},
	}}
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	node.Status.NodeInfo.KubeletVersion = "v1.36.0"
	for _, change := range changes {
		change(node)
	}
	return node
}

func cordoned(node *corev1.Node) { node.Spec.Unschedulable = true }

// sixNodes returns three nodes each of the pools web and db, in two zones.
func sixNodes() []*corev1.Node {
	var nodes []*corev1.Node
	for _, name := range []string{"a-db-1", "a-db-2", "a-web-1", "b-db-3", "b-web-2", "b-web-3"} {
		nodes = append(nodes, maintainedNode(name))
	}
	return nodes
}

// maintenanceOf returns the facts about a maintenance of first the pool db and then the pool web,
// with the given changes.
func maintenanceOf(changes ...func(*MaintenanceFacts)) MaintenanceFacts {
	m := &tidekeeperv1.NodeMaintenance{ObjectMeta: metav1.ObjectMeta{Name: "reboot", CreationTimestamp: metav1.NewTime(noon)}}
	m.Spec.Nodes.Pools = []string{"db", "web"}
	m.Status.RoundTime = &metav1.Time{Time: noon}
	f := MaintenanceFacts{Maintenance: m, Nodes: sixNodes()}
	for _, name := range m.Spec.Nodes.Pools {
		f.Pools = append(f.Pools, &tidekeeperv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
	for _, change := range changes {
		change(&f)
	}
	return f
}

func spec(change func(*tidekeeperv1.NodeMaintenanceSpec)) func(*MaintenanceFacts) {
	return func(f *MaintenanceFacts) { change(&f.Maintenance.Spec) }
}

func atATime(n int) func(*MaintenanceFacts) {
	return spec(func(s *tidekeeperv1.NodeMaintenanceSpec) { s.MaxUnavailable = &intstr.IntOrString{IntVal: int32(n)} })
}

// began adds the progress of the node a-db-1, whose drain began an hour ago.
func began(phase tidekeeperv1.NodePhase) func(*MaintenanceFacts) {
	return func(f *MaintenanceFacts) {
		if f.Maintenance.Status.Nodes == nil {
			f.Maintenance.Status.Nodes = map[string]tidekeeperv1.NodeProgress{}
		}
		if phase == tidekeeperv1.NodeFailed {
			f.Maintenance.Status.Failed++
		}
		f.Maintenance.Status.Nodes["a-db-1"] = tidekeeperv1.NodeProgress{Phase: phase, StartTime: metav1.NewTime(noon.Add(-time.Hour)), Since: metav1.NewTime(noon.Add(-time.Minute))}
	}
}

// shownNodes formats the nodes of a round, each with its phase and reason.
func shownNodes(r MaintenanceRound) []string {
	var lines []string
	for _, n := range r.Nodes {
		lines = append(lines, strings.TrimSpace(n.Name+" "+string(n.Phase)+" "+n.Reason))
	}
	return lines
}

func TestRoundOf(t *testing.T) {
	all := func(of string) []string {
		lines := []string{"a-db-1", "a-db-2", "b-db-3", "a-web-1", "b-web-2", "b-web-3"}
		for i := range lines {
			lines[i] += " Waiting" + of
		}
		return lines
	}
	window := spec(func(s *tidekeeperv1.NodeMaintenanceSpec) {
		s.Windows = []tidekeeperv1.RestartWindow{{Schedule: "0 22 * * *", DurationSeconds: 3600}}
	})
	scheduled := spec(func(s *tidekeeperv1.NodeMaintenanceSpec) { s.Schedule = "0 2 * * SUN" })
	for _, tt := range []struct {
		name    string
		changes []func(*MaintenanceFacts)
		want    []string
		held    string
	}{
		{
			"the first of the first pool, and the limit", nil,
			[]string{"a-db-1 Waiting", "a-db-2 Waiting MaxUnavailable", "b-db-3 Waiting MaxUnavailable", "a-web-1 Waiting OutOfOrder", "b-web-2 Waiting OutOfOrder", "b-web-3 Waiting OutOfOrder"}, "",
		},
		{
			"one is drained", []func(*MaintenanceFacts){began(tidekeeperv1.NodeDrained)},
			[]string{"a-db-1 Drained", "a-db-2 Waiting MaxUnavailable", "b-db-3 Waiting MaxUnavailable", "a-web-1 Waiting OutOfOrder", "b-web-2 Waiting OutOfOrder", "b-web-3 Waiting OutOfOrder"}, "",
		},
		{
			"the limit of a zone", []func(*MaintenanceFacts){atATime(4), spec(func(s *tidekeeperv1.NodeMaintenanceSpec) { s.MaxUnavailablePerZone = 1 }), began(tidekeeperv1.NodeDraining)},
			[]string{"a-db-1 Draining", "a-db-2 Waiting MaxUnavailable", "b-db-3 Waiting", "a-web-1 Waiting OutOfOrder", "b-web-2 Waiting OutOfOrder", "b-web-3 Waiting OutOfOrder"}, "",
		},
		{
			"another client has cordoned a node", []func(*MaintenanceFacts){func(f *MaintenanceFacts) { cordoned(f.Nodes[0]) }},
			[]string{"a-db-1 Waiting", "a-db-2 Waiting MaxUnavailable", "b-db-3 Waiting MaxUnavailable", "a-web-1 Waiting OutOfOrder", "b-web-2 Waiting OutOfOrder", "b-web-3 Waiting OutOfOrder"}, "",
		},
		{
			"a failed node stays cordoned", []func(*MaintenanceFacts){spec(func(s *tidekeeperv1.NodeMaintenanceSpec) { s.FailureLimit = 2 }), began(tidekeeperv1.NodeFailed), func(f *MaintenanceFacts) { cordoned(f.Nodes[0]) }},
			[]string{"a-db-1 Failed", "a-db-2 Waiting MaxUnavailable", "b-db-3 Waiting MaxUnavailable", "a-web-1 Waiting OutOfOrder", "b-web-2 Waiting OutOfOrder", "b-web-3 Waiting OutOfOrder"}, "",
		},
		{
			"the limit of failures", []func(*MaintenanceFacts){began(tidekeeperv1.NodeFailed)},
			append([]string{"a-db-1 Failed"}, all(" FailureLimit")[1:]...), "FailureLimit: 1 node failed, the limit is 1: edit the spec once the cause is fixed",
		},
		{"suspended", []func(*MaintenanceFacts){spec(func(s *tidekeeperv1.NodeMaintenanceSpec) { s.Suspend = true }), window}, all(" Suspended"), "Suspended: it is suspended: kubectl tide maintenance resume reboot"},
		{"the window is closed", []func(*MaintenanceFacts){window}, all(" WindowClosed"), "WindowClosed: no window is open; the next one opens at " + noon.Format(time.DateOnly) + "T22:00:00Z"},
		{
			"frozen", []func(*MaintenanceFacts){func(f *MaintenanceFacts) {
				f.Freezes = []period.Period{{Name: "holidays", Reason: "quiet", From: noon, Until: noon.Add(time.Hour)}}
			}},
			all(" Frozen"), "Frozen: Freeze holidays until " + noon.Add(time.Hour).Format(time.RFC3339) + ": quiet",
		},
		{
			"pods keep a node", []func(*MaintenanceFacts){func(f *MaintenanceFacts) {
				f.Blockers = func(node *corev1.Node) *Status { return &Status{Reason: "NoPlace", Message: node.Name} }
			}},
			[]string{"a-db-1 Waiting NoPlace", "a-db-2 Waiting NoPlace", "b-db-3 Waiting NoPlace", "a-web-1 Waiting OutOfOrder", "b-web-2 Waiting OutOfOrder", "b-web-3 Waiting OutOfOrder"}, "",
		},
		{
			"the first round is to come", []func(*MaintenanceFacts){scheduled, func(f *MaintenanceFacts) { f.Maintenance.Status.RoundTime = nil }},
			all(" Scheduled"), "Scheduled: the next round begins at " + noon.AddDate(0, 0, 1).Format(time.DateOnly) + "T02:00:00Z",
		},
		{
			"the round has ended, and another follows", []func(*MaintenanceFacts){
				scheduled, spec(func(s *tidekeeperv1.NodeMaintenanceSpec) {
					s.Nodes = tidekeeperv1.MaintenanceNodes{Names: []string{"a-db-1", "gone"}}
				}), began(tidekeeperv1.NodeDone),
			},
			[]string{"a-db-1 Waiting Scheduled"}, "Scheduled: the next round begins at " + noon.AddDate(0, 0, 1).Format(time.DateOnly) + "T02:00:00Z",
		},
		{
			"the only round has ended", []func(*MaintenanceFacts){
				spec(func(s *tidekeeperv1.NodeMaintenanceSpec) {
					s.Nodes = tidekeeperv1.MaintenanceNodes{Names: []string{"a-db-1"}}
				}), began(tidekeeperv1.NodeDone),
			},
			[]string{"a-db-1 Done"}, "",
		},
		{
			"a selector, and only old nodes", []func(*MaintenanceFacts){spec(func(s *tidekeeperv1.NodeMaintenanceSpec) {
				s.MaxUnavailable = &intstr.IntOrString{IntVal: 2}
				s.Nodes = tidekeeperv1.MaintenanceNodes{
					Selector: &tidekeeperv1.NodeSelector{MatchLabels: map[string]tidekeeperv1.LabelValue{corev1.LabelTopologyZone: "a"}},
					Outdated: &tidekeeperv1.OutdatedNodes{MinAgeSeconds: 30 * 24 * 3600},
				}
			}), func(f *MaintenanceFacts) { f.Nodes[1].CreationTimestamp = metav1.NewTime(noon.AddDate(0, 0, -20)) }},
			[]string{"a-db-1 Waiting", "a-web-1 Waiting"}, "",
		},
		{
			"only nodes of another version", []func(*MaintenanceFacts){spec(func(s *tidekeeperv1.NodeMaintenanceSpec) {
				s.Nodes = tidekeeperv1.MaintenanceNodes{Pools: []string{"web"}, Outdated: &tidekeeperv1.OutdatedNodes{KubeletVersionNot: "v1.36.0"}}
			}), func(f *MaintenanceFacts) { f.Nodes[2].Status.NodeInfo.KubeletVersion = "v1.35.9" }},
			[]string{"a-web-1 Waiting"}, "",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r, err := RoundOf(maintenanceOf(tt.changes...), noon)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, shownNodes(r)); diff != "" {
				t.Errorf("nodes (-want +got):\n%s", diff)
			}
			held := ""
			if r.Held != nil {
				held = r.Held.Reason + ": " + r.Held.Message
			}
			if held != tt.held {
				t.Errorf("held by %q, want %q", held, tt.held)
			}
		})
	}
}

// TestRoundOfInvalidSpecs checks that an invalid spec results in an error, not in an empty round.
func TestRoundOfInvalidSpecs(t *testing.T) {
	for name, change := range map[string]func(*tidekeeperv1.NodeMaintenanceSpec){
		"schedule":  func(s *tidekeeperv1.NodeMaintenanceSpec) { s.Schedule = "0 25 * * *" },
		"time zone": func(s *tidekeeperv1.NodeMaintenanceSpec) { s.Schedule, s.TimeZone = "@daily", "Mars" },
		"windows[0]": func(s *tidekeeperv1.NodeMaintenanceSpec) {
			s.Windows = []tidekeeperv1.RestartWindow{{Schedule: "0 25 * * *"}}
		},
		"spec.nodes": func(s *tidekeeperv1.NodeMaintenanceSpec) {
			s.Nodes = tidekeeperv1.MaintenanceNodes{Selector: &tidekeeperv1.NodeSelector{}}
		},
	} {
		if _, err := RoundOf(maintenanceOf(spec(change)), noon); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: the error is %v", name, err)
		}
	}
}

// TestLimitOf checks that a percentage is rounded down, and is at least one node.
func TestLimitOf(t *testing.T) {
	for text, want := range map[string]int{"": 1, "1": 1, "3": 3, "10%": 1, "50%": 3, "100%": 6, "99%": 5} {
		f := maintenanceOf()
		if text != "" {
			limit := intstr.Parse(text)
			f.Maintenance.Spec.MaxUnavailable = &limit
		}
		if r, err := RoundOf(f, noon); err != nil || r.Input.Limit != want {
			t.Errorf("%q of six nodes: %d, want %d (%v)", text, r.Input.Limit, want, err)
		}
	}
}

func TestMaintenanceStatus(t *testing.T) {
	ready := func(status metav1.ConditionStatus) []metav1.Condition {
		return []metav1.Condition{{Type: tidekeeperv1.ConditionReady, Status: status, Reason: "R", Message: "m"}}
	}
	for _, tt := range []struct {
		name   string
		change func(*tidekeeperv1.NodeMaintenance)
		want   Status
	}{
		{"no manager has looked at it", func(*tidekeeperv1.NodeMaintenance) {}, notReconciled},
		{"it goes on", func(m *tidekeeperv1.NodeMaintenance) { m.Status.Conditions = ready(metav1.ConditionTrue) }, Status{Reason: "R", Message: "m"}},
		{"a node has failed", func(m *tidekeeperv1.NodeMaintenance) {
			m.Status.Conditions, m.Status.Failed = ready(metav1.ConditionTrue), 1
		}, Status{Reason: "R", Message: "m", Severity: Warning}},
		{"it has stopped", func(m *tidekeeperv1.NodeMaintenance) { m.Status.Conditions = ready(metav1.ConditionFalse) }, Status{Reason: "R", Message: "m", Severity: Bad}},
		{"it is being deleted", func(m *tidekeeperv1.NodeMaintenance) {
			m.DeletionTimestamp, m.Finalizers = &metav1.Time{Time: noon.Add(-time.Minute)}, []string{"f"}
		}, Status{Reason: "Deleting", Message: "deletion requested 60s ago, waiting for the finalizer f; is a manager running?", Severity: Warning}},
	} {
		m := &tidekeeperv1.NodeMaintenance{}
		tt.change(m)
		if diff := cmp.Diff(tt.want, MaintenanceOf(m, noon).Status); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
}

func TestMaintenanceDetailText(t *testing.T) {
	f := maintenanceOf(spec(func(s *tidekeeperv1.NodeMaintenanceSpec) {
		s.Nodes.Outdated = &tidekeeperv1.OutdatedNodes{KubeletVersionNot: "v1.37.2", MinAgeSeconds: 30 * 24 * 3600}
		s.Windows = []tidekeeperv1.RestartWindow{{Schedule: "0 22 * * *", DurationSeconds: 14400}}
	}))
	r, err := RoundOf(f, noon)
	if err != nil {
		t.Fatal(err)
	}
	d := MaintenanceDetailOf(f.Maintenance, r, nil, noon)
	if want := "nodes of pools db, then web, whose kubelet is not v1.37.2, or that are at least 30d old"; d.Selects != want {
		t.Errorf("it selects %q, want %q", d.Selects, want)
	}
	if diff := cmp.Diff([]string{"at 22:00, every day for 4h"}, d.Windows); diff != "" {
		t.Errorf("windows (-want +got):\n%s", diff)
	}
}
