// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/text"
	"tidekeeper.dev/tidekeeper/internal/workload/podconfig"
)

// stormDelays is the number of consecutive delays from which on the condition RestartStorm is set.
// A delay is a change of the content that comes too soon after the last restart for a change.
const stormDelays = 3

// Source is the ConfigMap or Secret whose content changed last.
type Source struct {
	// Kind and Name identify the object; a zero Kind means that the object is unknown.
	Kind podconfig.Kind
	Name string
	// Writers lists the field managers that last wrote the content; empty if unknown.
	Writers []string
}

// Object returns the kind and the name of the object; "" if unknown.
func (s Source) Object() string {
	if s.Kind == 0 {
		return ""
	}
	return s.Kind.String() + " " + s.Name
}

// Writer returns the names of the field managers in Writers; "" if unknown.
func (s Source) Writer() string { return strings.Join(s.Writers, " and ") }

// String describes the changed ConfigMap or Secret and its writers.
func (s Source) String() string {
	switch object, writer := s.Object(), s.Writer(); {
	case object == "":
		return "it is not known which object changed last"
	case writer == "":
		return object + " changed last; it does not say who writes it"
	default:
		return fmt.Sprintf("%s changed last, and is written by %s", object, writer)
	}
}

// interval keeps restarts for changes at least minIntervalSeconds apart. It also counts the
// consecutive delays: how often in a row the content has changed again before the end of the
// interval.
type interval struct {
	state   *state
	history *history
	// newDelay is true if the current decision has increased the number of consecutive delays.
	newDelay bool
}

// ends returns the earliest time at which a restart for a change may start: minIntervalSeconds
// after the last start of such a restart; zero if there was none. A start in the future, beyond the
// clock skew, does not count, because the clock was set back.
func (i *interval) ends() time.Time {
	last := i.state.status.LastChangeTime
	if last == nil || last.After(i.state.now.Add(clockSkew)) {
		return time.Time{}
	}
	return last.UTC().Add(i.state.spec.GetMinInterval())
}

// count counts a change that came too soon after the last restart for a change. The change came too
// soon if it was before the end of the interval, or before the end of a restart that took longer.
// began is the time of the first change in the burst (a series of changes in quick succession). At
// most one change is counted after each restart.
func (i *interval) count(began time.Time) {
	status, from := i.state.status, i.ends()
	if past := i.history.past; !from.IsZero() && len(past) > 0 && past[0].Trigger == tidekeeperv1.TriggerChange {
		from = later(from, past[0].CompletedTime.Time)
	}
	if !status.ChangeDelayed && began.Before(from) {
		status.ChangeDelayed, i.newDelay = true, true
		status.ConsecutiveDelays++
	}
}

// begin starts the minimum interval when a restart for a change has ended. The interval counts from
// the start time of that restart.
func (i *interval) begin(active *tidekeeperv1.ActiveRestart) {
	i.state.status.LastChangeTime = &metav1.Time{Time: active.StartedTime.Time}
	i.state.status.ChangeDelayed = false
}

// forget drops the start time of the last restart for a change. It is called when the target
// changes, or when changes no longer trigger restarts.
func (i *interval) forget() { i.state.status.LastChangeTime = nil }

// settle resets the number of consecutive delays once the pods have the current content, and the
// content has remained unchanged for minIntervalSeconds. changed is the time of the last change. If
// more time must pass, settle schedules the next decision.
func (i *interval) settle(changed time.Time, wake *alarm) {
	if i.state.status.ConsecutiveDelays == 0 {
		return
	}
	if quiet := changed.Add(i.state.spec.GetMinInterval()); quiet.After(i.state.now) {
		wake.set(quiet)
		return
	}
	i.reset()
}

// reset resets the number of consecutive delays.
func (i *interval) reset() {
	i.state.status.ChangeDelayed, i.state.status.ConsecutiveDelays = false, 0
}

// stormy reports whether the content changes so often that the condition RestartStorm must be set.
func (i *interval) stormy() bool { return i.state.status.ConsecutiveDelays >= stormDelays }

// setStorm sets the condition RestartStorm while the content keeps changing. It writes the
// condition's message at most once per restart, regardless of the number of changes.
func (i *interval) setStorm(conditions *[]metav1.Condition, source Source) {
	switch was := meta.FindStatusCondition(*conditions, tidekeeperv1.ConditionRestartStorm); {
	case !i.stormy() && was != nil:
		meta.RemoveStatusCondition(conditions, tidekeeperv1.ConditionRestartStorm)
	case i.stormy() && (was == nil || i.newDelay):
		message := fmt.Sprintf("changes keep coming: %d times in a row or more, the content has changed again less than %s after a restart for a change; %s",
			stormDelays, i.state.spec.GetMinInterval(), source)
		meta.SetStatusCondition(conditions, metav1.Condition{
			Type: tidekeeperv1.ConditionRestartStorm, Status: metav1.ConditionTrue, Reason: tidekeeperv1.ReasonChangesKeepComing,
			Message:            text.Shorten(message, longestCondition),
			ObservedGeneration: i.state.restart.Generation, LastTransitionTime: metav1.Time{Time: i.state.now},
		})
	}
}
