// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/workload"
)

func followsConfig(spec *tidekeeperv1.ScheduledRestartSpec) {
	spec.OnConfigChange = tidekeeperv1.ConfigMapsOnly
}

// unhealthySince changes the status to that of a restart that waits because a Secret is missing.
func unhealthySince(in *Input) {
	in.Restart.Status.Conditions = []metav1.Condition{{Type: tidekeeperv1.ConditionReady, Status: metav1.ConditionTrue, Reason: tidekeeperv1.ReasonTargetUnhealthy, Message: "Secret db does not exist"}}
}

func TestGates(t *testing.T) {
	open := []string{
		"Schedule open: the next tick is 2026-06-10T03:00:00Z", "Target open: Deployment web exists",
		"Freeze open: no Freeze is in force",
		"Window open: there are no windows: at any time", "Order open: it comes after no other", "Health open: all its pods are available",
		"Query open: nothing is known against it: the manager asks the queries of its operator, if there are any, when a restart is ready to start",
		"Progress open: no restart is in progress",
	}
	// but returns the descriptions of the gates if all are open, with the given changes by index.
	but := func(changes map[int]string) []string {
		want := append([]string{}, open...)
		for i, text := range changes {
			want[i] = text
		}
		return want
	}
	for _, tc := range []struct {
		name string
		in   Input
		want []string
	}{
		{"all are open", makeInputs(), open},
		{"suspended", makeInputs(withSpec(suspended)), but(map[int]string{0: "Schedule closed (Suspended): it is suspended"})},
		{
			"stopped by failures", makeInputs(func(in *Input) { in.Restart.Status.ConsecutiveFailures = 3 }),
			but(map[int]string{0: "Schedule closed (FailureLimit): 3 restarts in a row have failed"}),
		},
		{
			"no workload", makeInputs(func(in *Input) { in.Target = nil }), but(map[int]string{
				1: "Target closed (TargetNotFound): there is no Deployment web in this namespace",
				5: "Health closed (TargetNotFound): there is no workload to look at",
			}),
		},
		{
			"its strategy and its health", makeInputs(withTarget(func(t *workload.State) { t.OnDelete, t.Rollout.Available = true, false })), but(map[int]string{
				1: "Target closed (StrategyOnDelete): Deployment web has the update strategy OnDelete, by which no pod would be replaced",
				5: "Health closed (TargetUnhealthy): Deployment web is not healthy",
			}),
		},
		{
			"it need not be healthy", makeInputs(withTarget(func(t *workload.State) { t.Rollout.Available = false }), withSpec(func(spec *tidekeeperv1.ScheduledRestartSpec) {
				spec.Precondition = tidekeeperv1.PreconditionNone
			})), but(map[int]string{5: "Health open: it need not be healthy, as the precondition is None"}),
		},
		{
			"new pods would not start, as only the manager can know", makeInputs(withSpec(followsConfig), unhealthySince), but(map[int]string{
				0: "Schedule open: the next tick is 2026-06-10T03:00:00Z; restarts when the ConfigMaps used by its pods change",
				5: "Health closed (TargetUnhealthy): Secret db does not exist",
			}),
		},
		{"its content does not matter", makeInputs(unhealthySince), open},
		{
			"a restart in progress", makeInputs(evicting, wasRefused), but(map[int]string{
				0: "Schedule open: the next tick is 2026-06-11T03:00:00Z",
				7: "Progress closed (Restarting): a restart for the tick of 2026-06-10T03:00:00Z is in progress; the budget b",
			}),
		},
		{
			"a freeze", makeInputs(frozen("02:00:00", "05:00:00")),
			but(map[int]string{2: "Freeze closed (Frozen): Freeze q4 until 2026-06-10T05:00:00Z: the books are closed, opens 05:00"}),
		},
		{
			"an open window", makeInputs(windowAt("0 2 * * *", 2*time.Hour)),
			but(map[int]string{3: "Window open: a window is open until 2026-06-10T04:00:00Z"}),
		},
		{
			"a closed window", makeInputs(windowAt("0 5 * * *", 2*time.Hour)),
			but(map[int]string{3: "Window closed (WindowClosed): no window is open; the next one opens at 2026-06-10T05:00:00Z, opens 05:00"}),
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var got []string
			for _, g := range Gates(tc.in) {
				text := fmt.Sprintf("%s closed (%s): %s", g.Name, g.Reason, g.Message)
				if g.Open {
					text = fmt.Sprintf("%s open: %s", g.Name, g.Message)
				}
				if !g.Opens.IsZero() {
					text += ", opens " + g.Opens.Format("15:04")
				}
				got = append(got, text)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("gates (-want +got):\n%s", diff)
			}
		})
	}
}

// TestGatesAreThoseOfDecide checks that Decide starts a restart that is requested now exactly if
// Gates reports all gates as open, apart from the gate of the schedule.
func TestGatesAreThoseOfDecide(t *testing.T) {
	for _, in := range []Input{
		makeInputs(), makeInputs(withSpec(suspended)), makeInputs(func(in *Input) { in.Target = nil }),
		makeInputs(frozen("02:00:00", "05:00:00")), makeInputs(frozen("01:00:00", "02:00:00")),
		makeInputs(windowAt("0 5 * * *", time.Hour)), makeInputs(windowAt("0 2 * * *", 2*time.Hour)),
		makeInputs(windowAt("0 2 * * *", 70*time.Minute), lastTook(11*time.Minute)),
		makeInputs(withTarget(func(t *workload.State) { t.Paused = true })), makeInputs(evicting),
		makeInputs(withTarget(func(t *workload.State) { t.Partitioned = true })),
		makeInputs(withTarget(func(t *workload.State) { t.Stalled = true })),
		makeInputs(withTarget(func(t *workload.State) { t.Rollout.Updating = true })),
		makeInputs(withTarget(func(t *workload.State) { t.Rollout.Available = false })),
		makeInputs(withTarget(func(t *workload.State) { t.Rollout.Available = false }), withSpec(func(s *tidekeeperv1.ScheduledRestartSpec) { s.Precondition = tidekeeperv1.PreconditionNone })),
		makeInputs(withTarget(func(t *workload.State) { t.Deleting = true })),
		makeInputs(first()), makeInputs(first(dueAt("03:00:00"))), makeInputs(first(restarting("03:00:00"))), makeInputs(first(had("03:00:00", tidekeeperv1.OutcomeFailed))),
		makeInputs(first(), func(in *Input) { in.Cycle = []string{"web", "db", "web"} }),
		makeInputs(func(in *Input) { in.Restart.Status.ConsecutiveFailures = in.Restart.Spec.FailureLimit }),
	} {
		requestAt("03:00:01")(&in)
		in.Restart.Status.NextScheduleTime = nil
		open := true
		for _, g := range Gates(in) {
			open = open && (g.Open || g.Name == GateSchedule)
		}
		if d := Decide(in); open != !d.Send.IsZero() {
			t.Errorf("all gates are open: %v; the tick that is sent: %s", open, d.Send)
		}
	}
}
