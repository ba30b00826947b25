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
	"tidekeeper.dev/tidekeeper/internal/podconfig"
	"tidekeeper.dev/tidekeeper/internal/text"
)

// stormDelays is how many times in a row the content changes again within minIntervalSeconds before
// that is reported as a storm.
const stormDelays = 3

// Source is the object whose content changed last.
type Source struct {
	// Kind and Name are those of the object; the zero Kind means that it is not known.
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

// Writer returns the writers in one text, "" if they are not known.
func (s Source) Writer() string { return strings.Join(s.Writers, " and ") }

// String says what changes, and who writes it.
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

// intervalEnds returns from when on a restart for a change may be started, as the last one was
// started minIntervalSeconds before; zero if none was. A start that is yet to come by the clock
// does not count: the clock was set back.
func (d *decider) intervalEnds() time.Time {
	last := d.out.Status.LastChangeTime
	if last == nil || last.After(d.in.Now.Add(clockSkew)) {
		return time.Time{}
	}
	return last.UTC().Add(d.spec.GetMinInterval())
}

// changeDue returns when the restart for a change with a tick is due: later by the place of the
// object, and not before the interval has ended. A change that follows one that waits already
// does not have it wait for longer, but for the end of the burst. One that is started is due.
func (d *decider) changeDue(tick time.Time) time.Time {
	status := &d.out.Status
	due := later(tick.Add(place(d.in.Restart)), d.intervalEnds())
	active := status.Active
	switch next := status.NextChangeTime; {
	case active != nil && active.Trigger == tidekeeperv1.TriggerChange && active.StartedTime.Time.Before(due):
		return active.StartedTime.UTC()
	case active == nil && next != nil && next.Time.Before(due):
		return later(tick, next.UTC())
	}
	return due
}

// noteChange notes when the restart for a change with a tick is due, and whether the content has
// changed again too soon after the last one: before the interval had ended, or before that restart
// had, which took longer. That is counted once for each restart.
func (d *decider) noteChange(tick time.Time) {
	status := &d.out.Status
	due, _ := d.times(tick, tidekeeperv1.TriggerChange)
	status.NextChangeTime = &metav1.Time{Time: due}
	from := d.intervalEnds()
	if history := status.History; !from.IsZero() && len(history) > 0 && history[0].Trigger == tidekeeperv1.TriggerChange {
		from = later(from, history[0].CompletedTime.Time)
	}
	if !status.ChangeDelayed && d.in.Config.began().Before(from) {
		status.ChangeDelayed, d.newDelay = true, true
		status.ConsecutiveDelays++
	}
}

// began returns when the changes began of which none followed the one before for long enough.
func (c *Config) began() time.Time {
	if c.Restless.IsZero() {
		return c.Changed
	}
	return c.Restless
}

// beginInterval takes in that a restart for a change was sent and has ended.
func (d *decider) beginInterval(active *tidekeeperv1.ActiveRestart) {
	d.out.Status.LastChangeTime = &metav1.Time{Time: active.StartedTime.Time}
	d.out.Status.ChangeDelayed = false
}

// observeQuiet forgets the delays when the content has stayed the same for the interval, and is what
// the pods have.
func (d *decider) observeQuiet() {
	if d.out.Status.ConsecutiveDelays == 0 {
		return
	}
	if quiet := d.in.Config.Changed.Add(d.spec.GetMinInterval()); quiet.After(d.in.Now) {
		d.wakeAt(quiet)
		return
	}
	d.endDelays()
}

func (d *decider) endDelays() {
	d.out.Status.ChangeDelayed, d.out.Status.ConsecutiveDelays = false, 0
}

// stormy reports whether changes keep coming.
func (d *decider) stormy() bool { return d.out.Status.ConsecutiveDelays >= stormDelays }

// setStorm sets the condition RestartStorm while changes keep coming. Its message is written at
// most once for each restart, however often the object changes.
func (d *decider) setStorm(conditions *[]metav1.Condition) {
	switch was := meta.FindStatusCondition(*conditions, tidekeeperv1.ConditionRestartStorm); {
	case !d.stormy() && was != nil:
		meta.RemoveStatusCondition(conditions, tidekeeperv1.ConditionRestartStorm)
	case d.stormy() && (was == nil || d.newDelay):
		source := Source{}
		if d.in.Config != nil {
			source = d.in.Config.Source
		}
		message := fmt.Sprintf("changes keep coming: %d times in a row or more, the content has changed again less than %s after a restart for a change; %s",
			stormDelays, d.spec.GetMinInterval(), source)
		meta.SetStatusCondition(conditions, metav1.Condition{
			Type: tidekeeperv1.ConditionRestartStorm, Status: metav1.ConditionTrue, Reason: tidekeeperv1.ReasonChangesKeepComing,
			Message:            text.Shorten(message, longestCondition),
			ObservedGeneration: d.in.Restart.Generation, LastTransitionTime: metav1.Time{Time: d.in.Now},
		})
	}
}
