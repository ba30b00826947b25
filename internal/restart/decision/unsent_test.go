// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/workload"
)

// sendFails sets the failure of the last attempt to send the tick of the restart in progress.
func sendFails(err string, refused bool) func(*Input) {
	return func(in *Input) { in.SendFailure = SendFailure{err, refused} }
}

// TestSendFails checks that the condition Ready of a restart whose tick the API server rejects
// reports the rejection, and that the history entry of a tick that was never sent reports the last
// failure. It must do so even if the restart has lost its slot or was blocked since.
func TestSendFails(t *testing.T) {
	const restarting = "restarting Deployment web for the tick of 2026-06-10T03:00:00Z"
	policy, network := sendFails("a policy says no", true), sendFails("connection refused", false)
	for name, tt := range map[string]struct {
		in   Input
		want string
	}{
		"refused":                         {makeInputs(active, unsent, policy, now("03:01:00")), restarting + "; the API server refused it: a policy says no"},
		"failed":                          {makeInputs(active, unsent, network, now("03:01:00")), restarting},
		"sent after all":                  {makeInputs(active, policy, withTarget(sentTo), now("03:01:00")), restarting},
		"refused until its deadline":      {makeInputs(active, unsent, policy, now("03:15:01")), "DeadlineExceeded: not sent before the deadline: the API server refused it: a policy says no"},
		"failed until its deadline":       {makeInputs(active, unsent, network, now("03:15:01")), "DeadlineExceeded: not sent before the deadline: the last attempt failed: connection refused"},
		"refused until it had no slot":    {makeInputs(active, unsent, policy, waited(tidekeeperv1.ReasonBudgetExhausted), now("03:15:01")), "BudgetExhausted: not sent before the deadline: the restart budget was used up; before that, the API server refused it: a policy says no"},
		"refused until it was paused":     {makeInputs(active, unsent, policy, withTarget(func(t *workload.State) { t.Paused = true }), now("03:15:01")), "TargetPaused: not sent before the deadline: Deployment web is paused; before that, the API server refused it: a policy says no"},
		"there was no attempt to send it": {makeInputs(active, unsent, now("03:15:01")), "DeadlineExceeded: the restart was not sent before its deadline"},
	} {
		d := Decide(tt.in)
		got := meta.FindStatusCondition(d.Status.Conditions, tidekeeperv1.ConditionReady).Message
		if len(d.Records) > 0 {
			got = d.Records[0].Reason + ": " + d.Records[0].Message
		}
		if got != tt.want {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}

// TestClaimedWaitsAsUnclaimed checks for each reason to wait that a claimed tick which was not sent
// waits for the same reason as an unclaimed tick, and that it is recorded as missed for that reason
// after its deadline.
func TestClaimedWaitsAsUnclaimed(t *testing.T) {
	waits := map[string]func(*Input){
		tidekeeperv1.ReasonTargetPaused:    withTarget(func(t *workload.State) { t.Paused = true }),
		tidekeeperv1.ReasonTargetRolling:   withTarget(func(t *workload.State) { t.Rollout = workload.Progress{Updating: true} }),
		tidekeeperv1.ReasonTargetUnhealthy: withTarget(func(t *workload.State) { t.Rollout.Available = false }),
		tidekeeperv1.ReasonFrozen:          frozen("02:00:00", "05:00:00"),
		tidekeeperv1.ReasonWindowClosed: func(in *Input) {
			in.Windows, in.Restart.Status.History = window(), tookFor(90*time.Minute).past
		},
		tidekeeperv1.ReasonOutOfOrder:          first(dueAt("03:00:00")),
		tidekeeperv1.ReasonPredecessorFailed:   first(had("03:00:00", tidekeeperv1.OutcomeFailed)),
		tidekeeperv1.ReasonPredecessorNotFound: func(in *Input) { in.Restart.Spec.After, in.After = []string{"db"}, []Predecessor{{Name: "db"}} },
		tidekeeperv1.ReasonClosedByQuery: func(in *Input) {
			in.Queried, in.Answer = true, &Answer{At: in.Now, Closed: "closed by query alerts: Down"}
		},
		tidekeeperv1.ReasonBudgetExhausted: func(in *Input) {
			noSlot(in)
			if in.Now.After(at("03:15:00")) { // A restart that is past its deadline asks for no slot.
				waited(tidekeeperv1.ReasonBudgetExhausted)(in)
			}
		},
	}
	for _, reason := range tidekeeperv1.WaitReasons {
		wait := waits[reason]
		if wait == nil {
			if reason != tidekeeperv1.ReasonTargetNotFound { // Without a target, a claimed tick ends at once: see TestTrack.
				t.Errorf("no tick waits for %s", reason)
			}
			continue
		}
		for clock, want := range map[string]string{"03:01:00": "waits for ", "03:15:01": "Missed for "} {
			for claim, in := range map[string]Input{"claimed": makeInputs(active, unsent, now(clock), wait), "not claimed": makeInputs(now(clock), wait)} {
				d := Decide(in)
				got := "waits for " + meta.FindStatusCondition(d.Status.Conditions, tidekeeperv1.ConditionReady).Reason
				if len(d.Records) > 0 {
					got = string(d.Records[0].Outcome) + " for " + d.Records[0].Reason
				}
				if got != want+reason || !d.Send.IsZero() {
					t.Errorf("%s, at %s: %s, want %s%s; sends %s", claim, clock, got, want, reason, d.Send)
				}
			}
		}
	}
}
