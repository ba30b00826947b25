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

// stormDelays is the number of consecutive changes within minIntervalSeconds that are reported as a storm.
const stormDelays = 3

// Source is the object whose content changed last.
type Source struct {
	// Kind and Name identify the object; the zero Kind means that the object is unknown.
	Kind podconfig.Kind
	Name string
	// Writers has the field managers that last wrote the content, as far as known.
	Writers []string
}

// Object returns the kind and the name, or "" if unknown.
func (s Source) Object() string {
	if s.Kind == 0 {
		return ""
	}
	return s.Kind.String() + " " + s.Name
}

// Writer returns the names of the writers, or "" if unknown.
func (s Source) Writer() string { return strings.Join(s.Writers, " and ") }

// String describes the object that changes and its writers.
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

// interval keeps restarts for changes minIntervalSeconds apart, and counts the consecutive times that the
// content has changed again before the end of the interval.
type interval struct {
	state   *state
	history *history
	// newDelay is set if this decision has noticed another change that came too soon.
	newDelay bool
}

// ends returns the time from which on a restart for a change may start: minIntervalSeconds after the last
// such start; zero if there was none. A start in the future does not count: the clock was set back.
func (i *interval) ends() time.Time {
	last := i.state.status.LastChangeTime
	if last == nil || last.After(i.state.now.Add(clockSkew)) {
		return time.Time{}
	}
	return last.UTC().Add(i.state.spec.GetMinInterval())
}

// count counts a change that came too soon after the last restart for a change: before the end of the
// interval, or of a restart that took longer. began is the time of the first change. Each restart is counted
// once.
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

// begin starts the interval after a restart for a change was sent and has ended.
func (i *interval) begin(active *tidekeeperv1.ActiveRestart) {
	i.state.status.LastChangeTime = &metav1.Time{Time: active.StartedTime.Time}
	i.state.status.ChangeDelayed = false
}

// forget drops the last restart for a change, which had another target or no longer counts.
func (i *interval) forget() { i.state.status.LastChangeTime = nil }

// settle resets the delays when the pods have the content, and the content has been unchanged for the
// interval. changed is the time of the last change.
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

// reset resets the delays.
func (i *interval) reset() {
	i.state.status.ChangeDelayed, i.state.status.ConsecutiveDelays = false, 0
}

// stormy reports whether the content keeps changing.
func (i *interval) stormy() bool { return i.state.status.ConsecutiveDelays >= stormDelays }

// setStorm sets the condition RestartStorm while the content keeps changing. Its message is written at most
// once per restart, however often the object changes.
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
