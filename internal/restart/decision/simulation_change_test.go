// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
)

// content is the content of the ConfigMaps that the target uses. If a change is reverted, the text
// is the same as before, but the time is different.
type content struct {
	text string
	at   time.Time
	// restless is the time of the first change in the current burst of changes.
	restless time.Time
}

// becomes returns the content after a change at the given time. The API server truncates times to
// seconds.
func (c content) becomes(text string, at time.Time) content {
	next := content{text, at.Truncate(time.Second), at.Truncate(time.Second)}
	if next.at.Sub(c.at) <= DefaultChangeSettle {
		next.restless = c.restless
	}
	return next
}

// served identifies a target and the content for which it was restarted.
type served struct {
	content
	target types.UID
}

// contents is the state of the simulated ConfigMaps.
type contents struct {
	// content is the current content; olderContent is the content in a stale cache. podsContent is
	// the content with which the oldest pod was started; rollingContent is the content for the
	// rollout in progress.
	content, olderContent       content
	podsContent, rollingContent content
	// written counts the different texts. changes counts the restarts for each content, separately
	// for each target, since a new target may have been started with older content. changedAt maps
	// each target to the time of its last restart for a change. clockSet is true once the clock was
	// set, after which times cannot be compared.
	written   int
	changes   map[served]int
	changedAt map[types.UID]time.Time
	clockSet  bool
}

// drawChange enables onConfigChange in a third of the cases.
func (s *simulation) drawChange() {
	s.changes, s.changedAt = map[served]int{}, map[types.UID]time.Time{}
	s.content = content{"c1-0", s.now, s.now}
	s.olderContent = s.content
	if s.random.IntN(3) > 0 {
		return
	}
	s.restart.Spec.OnConfigChange = tidekeeperv1.ConfigMapsOnly
	s.restart.Spec.MinIntervalSeconds = []int32{1, 60, 600, 3600}[s.random.IntN(4)]
	if s.edits && s.random.IntN(2) == 0 {
		s.ticks = nil
	}
}

// write changes the content of the ConfigMaps, or reverts the last change.
func (s *simulation) write() {
	text := s.olderContent.text
	if s.random.IntN(3) > 0 || text == s.content.text {
		s.written++
		text = fmt.Sprint("c1-", s.written)
	}
	s.olderContent, s.content = s.content, s.content.becomes(text, s.now)
	s.log("the content becomes %s", text)
}

// cachedConfig returns the content of the ConfigMaps according to a manager's cache.
func (s *simulation) cachedConfig() *Config {
	seen := s.content
	switch {
	case s.restart.Spec.OnConfigChange == "" || s.target == nil:
		return nil
	case s.unsound(8):
		return &Config{} // The manager has just started to watch ConfigMaps.
	case s.unsound(4):
		seen = s.olderContent
	}
	return seen.config(false)
}

func (c content) config(live bool) *Config {
	return &Config{Hash: c.text, Changed: c.at, Restless: c.restless, Live: live}
}

// readLive provides the facts that a decision needs from the API server, and repeats the decision
// until it needs no more of them.
func (s *simulation) readLive(in *Input, d Output) Output {
	for {
		switch d.Needs {
		case NeedLiveConfig:
			in.Config = s.content.config(true)
		case NeedLivePodAges, NeedPodAges:
			in.PodAges = &PodAges{Oldest: s.pods, Live: true}
		case NeedLiveTarget:
			in.Live, in.Target = true, s.target
		case NeedPods:
			in.Pods = s.lookAtPods()
		case NeedSlot:
			if !s.sound && s.random.IntN(3) == 0 {
				return d
			}
			in.HasSlot = true
		default:
			return d
		}
		d = Decide(*in)
	}
}

// checkChange panics if the target must not be restarted for a change now.
func (s *simulation) checkChange(tick time.Time) {
	serves := served{s.content, s.target.UID}
	s.changes[serves]++
	interval, last := s.restart.Spec.GetMinInterval(), s.changedAt[s.target.UID]
	s.changedAt[s.target.UID] = s.now
	switch {
	case !s.clockSet && !last.IsZero() && s.now.Sub(last) < interval:
		panic(fmt.Sprintf("the tick of %s was started %s after the last restart for a change", formatTime(tick), s.now.Sub(last)))
	case s.restart.Spec.OnConfigChange == "" || s.restart.Spec.Suspend:
		panic(fmt.Sprintf("the tick of %s was started for a change that does not count", formatTime(tick)))
	case s.changes[serves] > 1:
		panic(fmt.Sprintf("the content %s was restarted for twice", s.content.text))
	case !s.clockSet && s.podsContent == s.content && s.pods.After(s.content.at):
		panic(fmt.Sprintf("the tick of %s was started, but the pods have the content %s", formatTime(tick), s.content.text))
	case !s.clockSet && s.now.Sub(s.content.at) < DefaultChangeSettle && s.now.Sub(s.content.restless) < max(interval, DefaultChangeSettle):
		panic(fmt.Sprintf("the tick of %s was started %s after the last change", formatTime(tick), s.now.Sub(s.content.at)))
	}
}

// staysFresh ends all failures, and panics if a subsequent change does not reach the pods in time.
// The manager is woken only by the event of the change and at the wake-up times of its decisions.
func (s *simulation) staysFresh() {
	s.sound = true
	after := s.restart.DeepCopy()
	after.Generation++
	after.Annotations, after.Spec.Suspend, after.Spec.MaxPodAgeSeconds = nil, false, 0
	if after.Spec.OnConfigChange == "" {
		return
	}
	s.restart, s.olderRestart, s.windows, s.freezes, s.olderFreezes, s.ticks = after, after, nil, nil, nil, nil
	if s.first != nil {
		s.first = nil
	}
	after.Spec.After = nil
	// The clock may have been set back earlier. It is now moved far ahead, and remains right
	// afterwards.
	s.now = s.now.Add(48 * time.Hour)
	s.create()
	for range 3 {
		s.reconcile()
		s.roll()
	}
	for range 3 {
		s.written++
		s.now = s.now.Add(time.Minute)
		s.content = s.content.becomes(fmt.Sprint("c1-", s.written), s.now)
		s.log("the content becomes %s", s.content.text)
		for end := s.now.Add(after.Spec.GetMinInterval() + 5*time.Minute); s.podsContent != s.content; {
			s.reconcile()
			switch {
			case s.target.Rollout.Updating:
				s.now = s.now.Add(time.Second)
				s.roll()
			case s.wake.IsZero():
				panic("nothing wakes the manager to restart for a change")
			case s.wake.After(s.now):
				s.now = s.wake
			}
			if s.now.After(end) {
				panic(fmt.Sprintf("the pods have %s, and not %s, five minutes after the interval", s.podsContent.text, s.content.text))
			}
		}
	}
}
