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

// stormDelays is how many times in a row the content changes again within minIntervalSeconds before
// that is reported as a storm.
const stormDelays = 3

// Source is the object whose content changed last.
type Source struct {
	// Kind and Name identify the object; the zero Kind means that it is not known.
	Kind podconfig.Kind
	Name string
	// Writers are the field managers that have written its content last, as far as they are known.
	Writers []string
}

// Object returns the kind and the name, "" if they are not known.
func (s Source) Object() string {
	switch s.Kind {
	case podconfig.ConfigMap:
		return "ConfigMap " + s.Name
	case podconfig.Secret:
		return "Secret " + s.Name
	}
	return ""
}

// Writer returns the writers in a text, "" if they are not known.
func (s Source) Writer() string { return strings.Join(s.Writers, " and ") }

// String says which object changes, and who writes it.
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

// interval keeps restarts for changes minIntervalSeconds apart, and counts how often in a row the
// content has changed again before that.
type interval struct {
	state   *state
	history *history
	// newDelay says that the content has changed again too soon just now.
	newDelay bool
}

// ends returns from when on a restart for a change may be started, as the last restart for a change was
// started minIntervalSeconds before; zero if there was none. A start that is yet to come by the clock
// does not count: the clock was set back.
func (i *interval) ends() time.Time {
	last := i.state.status.LastChangeTime
	if last == nil || last.After(i.state.now.Add(clockSkew)) {
		return time.Time{}
	}
	return last.UTC().Add(i.state.spec.GetMinInterval())
}

// count counts a content that has changed again too soon after the last restart for a change: before
// the interval had ended, or before that restart had, which took longer. began is when the changes
// began. It is counted once for each restart.
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

// begin takes in that a restart for a change was sent and has ended.
func (i *interval) begin(active *tidekeeperv1.ActiveRestart) {
	i.state.status.LastChangeTime = &metav1.Time{Time: active.StartedTime.Time}
	i.state.status.ChangeDelayed = false
}

// forget drops the last restart for a change, which was of another target, or does not count any more.
func (i *interval) forget() { i.state.status.LastChangeTime = nil }

// settle forgets the delays when the content has stayed the same for the interval, and is the content
// that the pods have. changed is when it changed last.
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

// reset forgets the delays.
func (i *interval) reset() {
	i.state.status.ChangeDelayed, i.state.status.ConsecutiveDelays = false, 0
}

// stormy reports whether changes keep coming.
func (i *interval) stormy() bool { return i.state.status.ConsecutiveDelays >= stormDelays }

// setStorm sets the condition RestartStorm while changes keep coming. Its message is written at
// most once for each restart, however often the object changes.
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
