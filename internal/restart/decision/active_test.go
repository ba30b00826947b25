// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
)

// TestClaimTransition checks that a claim records the tick, the target and the hash of the
// ConfigMaps and Secrets, and starts the restart at its due time, or now if that is later.
func TestClaimTransition(t *testing.T) {
	c := &candidate{tick: at("03:00:00"), trigger: tidekeeperv1.TriggerSchedule, due: at("03:05:00")}
	for now, starts := range map[string]string{"03:04:00": "03:05:00", "03:06:00": "03:06:00"} {
		s := stateAt(now, func(s *state) {
			s.spec.TargetRef, s.target.UID = tidekeeperv1.TargetRef{Kind: "Deployment", Name: "web"}, "u1"
		})
		got := (&activeRestart{s}).claim(c, "c1-1")
		want := &tidekeeperv1.ActiveRestart{
			ScheduledTime: *metaAt("03:00:00"), StartedTime: *metaAt(starts), Trigger: tidekeeperv1.TriggerSchedule,
			TargetUID: "u1", TargetRef: &tidekeeperv1.TargetRef{Kind: "Deployment", Name: "web"}, ConfigHash: "c1-1",
		}
		if diff := cmp.Diff(want, s.status.Active); diff != "" || !got.Equal(at(starts)) {
			t.Errorf("claimed at %s, it starts at %s (-want +got):\n%s", now, got, diff)
		}
		s.spec.TargetRef.Name = "api"
		if s.status.Active.TargetRef.Name != "web" {
			t.Error("an edit of the target changes the restart in progress")
		}
	}
}

// planned returns a restart that is claimed and planned to start at 03:00.
func planned(now string) (*activeRestart, *tidekeeperv1.ScheduledRestartStatus) {
	s := stateAt(now)
	s.status.Active = &tidekeeperv1.ActiveRestart{ScheduledTime: *metaAt("03:00:00"), StartedTime: *metaAt("03:00:00"), Trigger: tidekeeperv1.TriggerSchedule}
	return &activeRestart{s}, s.status
}

// TestStartTransitions checks the start time of a restart whose tick is sent late, and the
// correction of a start time in the future.
func TestStartTransitions(t *testing.T) {
	for _, tt := range []struct{ now, sent, corrected string }{
		{"02:59:59", "03:00:00", "02:59:59"},
		{"03:00:00", "03:00:00", "03:00:00"},
		{"03:00:09", "03:00:00", "03:00:00"},
		{"03:00:10", "03:00:10", "03:00:00"},
	} {
		a, status := planned(tt.now)
		if moved := a.send(10 * time.Second); moved != (tt.sent != "03:00:00") || !status.Active.StartedTime.Equal(metaAt(tt.sent)) {
			t.Errorf("sent at %s, it starts at %s, another time: %t; want %s", tt.now, status.Active.StartedTime, moved, tt.sent)
		}
		a, status = planned(tt.now)
		if a.correct(); !status.Active.StartedTime.Equal(metaAt(tt.corrected)) {
			t.Errorf("corrected at %s, it starts at %s, want %s", tt.now, status.Active.StartedTime, tt.corrected)
		}
	}
}

// TestEvictionTransitions checks that the reason of a rejected eviction is kept until an eviction
// is accepted, and is shortened to fit into the status.
func TestEvictionTransitions(t *testing.T) {
	a, status := planned("03:00:00")
	a.evict(at("02:59:00"))
	if !status.Active.Eviction.CreatedBefore.Equal(metaAt("02:59:00")) {
		t.Errorf("it evicts pods created before %s", status.Active.Eviction.CreatedBefore)
	}
	for _, step := range []struct {
		last Attempts
		want string
	}{
		{Attempts{}, ""},
		{Attempts{Refusal: "budget b"}, "budget b"},
		{Attempts{}, "budget b"},
		{Attempts{Evicted: true}, ""},
	} {
		if a.noteRefusal(step.last); status.Active.Eviction.Refused != step.want {
			t.Errorf("after %+v the refusal is %q, want %q", step.last, status.Active.Eviction.Refused, step.want)
		}
	}
	if a.noteRefusal(Attempts{Refusal: strings.Repeat("b", 5000)}); len(status.Active.Eviction.Refused) != tidekeeperv1.MaxRefusalLength {
		t.Errorf("a refusal has %d bytes, want %d", len(status.Active.Eviction.Refused), tidekeeperv1.MaxRefusalLength)
	}
}

// TestEndTransitions checks that no restart is in progress after a restart has ended or its claim
// was taken back.
func TestEndTransitions(t *testing.T) {
	a, status := planned("03:10:00")
	if ended := a.end(); status.Active != nil || !ended.ScheduledTime.Equal(metaAt("03:00:00")) {
		t.Errorf("%+v ended, and %+v is in progress", ended, status.Active)
	}
	a, status = planned("03:10:00")
	if a.takeBack(); status.Active != nil {
		t.Errorf("%+v was taken back, and is in progress", status.Active)
	}
}
