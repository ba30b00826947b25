// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package optin

import (
	"fmt"
	"maps"
	"testing"

	"pgregory.net/rapid"

	applyv1 "tidekeeper.dev/tidekeeper/api/applyconfiguration/api/v1"
	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/workload"
)

// TestFollowing checks that any change by users to the annotations or the ScheduledRestart causes a
// single write and no further writes, and that each field has the value set by its last writer.
func TestFollowing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		annotations := in("true")
		var server *serverSide
		// handSuspend is the value of suspend that a user has set manually and that is still in
		// effect, or nil if there is none.
		var handSuspend *bool
		for range rapid.IntRange(1, 12).Draw(t, "steps") {
			hadTrigger := hasTrigger(annotations)
			switch rapid.SampledFrom([]string{"schedule", "age", "zone", "suspend", "edit schedule", "edit age", "edit history"}).Draw(t, "step") {
			case "schedule":
				setOrDelete(annotations, scheduleKey, rapid.SampledFrom([]string{"", "@daily", "@weekly"}).Draw(t, "schedule"))
			case "age":
				setOrDelete(annotations, ageKey, rapid.SampledFrom([]string{"", "86400", "604800"}).Draw(t, "age"))
			case "zone":
				setOrDelete(annotations, zoneKey, rapid.SampledFrom([]string{"", "UTC", "Europe/Berlin"}).Draw(t, "zone"))
			case "suspend":
				if server != nil {
					if value := rapid.Bool().Draw(t, "suspend"); value != server.o.Spec.Suspend {
						server.o.Spec.Suspend, server.suspend, handSuspend = value, false, &value
					}
				}
			case "edit schedule":
				if server != nil && server.o.Spec.Schedule != "0 5 * * *" {
					server.o.Spec.Schedule, server.schedule = "0 5 * * *", false
				}
			case "edit age":
				if server != nil && server.o.Spec.MaxPodAgeSeconds != 3600 {
					server.o.Spec.MaxPodAgeSeconds, server.age = 3600, false
				}
			case "edit history":
				if server != nil {
					server.o.Spec.HistoryLimit++
				}
			}
			hasTrigger := hasTrigger(annotations)
			if hasTrigger && !hadTrigger {
				handSuspend = nil
			}

			first := server == nil
			d := decide(workload.Deployment, web(annotations), server.object())
			if d.action == create != first || d.action == remove || d.action == complain {
				t.Fatalf("%s: %s", d.action, d.note)
			}
			if d.apply != nil {
				server = server.apply(d.apply)
			}
			if d := decide(workload.Deployment, web(annotations), server.object()); d.action != nothing {
				t.Fatalf("a second write: %s: %s", d.action, d.note)
			}

			spec := server.o.Spec
			if value, named := annotations[scheduleKey]; named && string(spec.Schedule) != value {
				t.Fatalf("schedule %q, want %q as the annotation says", spec.Schedule, value)
			}
			if value, named := annotations[zoneKey]; spec.TimeZone != value && (named || spec.TimeZone != "UTC") {
				t.Fatalf("time zone %q, want %q as the annotation says", spec.TimeZone, value)
			}
			if value, named := annotations[ageKey]; named && fmt.Sprint(spec.MaxPodAgeSeconds) != value {
				t.Fatalf("maxPodAgeSeconds %d, want %s as the annotation says", spec.MaxPodAgeSeconds, value)
			}
			want := !hasTrigger
			if handSuspend != nil {
				want = *handSuspend
			}
			// If a user sets suspend back to the value that the opt-in applied, suspend follows the
			// annotations again, because the decision cannot distinguish this state from an
			// unedited field.
			if spec.Suspend != want && (handSuspend == nil || hasTrigger == hadTrigger) {
				t.Fatalf("suspend %t, want %t", spec.Suspend, want)
			}
			if handSuspend != nil && spec.Suspend != *handSuspend {
				handSuspend = nil
			}
		}
	})
}

func hasTrigger(annotations map[string]string) bool {
	return annotations[scheduleKey] != "" || annotations[ageKey] != ""
}

func setOrDelete(annotations map[string]string, key, value string) {
	if value == "" {
		delete(annotations, key)
	} else {
		annotations[key] = value
	}
}

// serverSide simulates the API server's server-side apply: fields in the configuration are set and
// become owned, and owned fields that it omits are reset to their defaults.
type serverSide struct {
	o                            *tidekeeperv1.ScheduledRestart
	schedule, zone, age, suspend bool
}

func (s *serverSide) object() *tidekeeperv1.ScheduledRestart {
	if s == nil {
		return nil
	}
	return s.o.DeepCopy()
}

func (s *serverSide) apply(c *applyv1.ScheduledRestartApplyConfiguration) *serverSide {
	if s == nil {
		s = &serverSide{o: MakeRestart().Owner("apps/v1", "Deployment", "web", "web-1").Obj()}
	}
	s.o.Annotations = maps.Clone(c.Annotations)
	s.schedule = applyField(&s.o.Spec.Schedule, c.Spec.Schedule, "", s.schedule)
	s.zone = applyField(&s.o.Spec.TimeZone, c.Spec.TimeZone, "UTC", s.zone)
	s.age = applyField(&s.o.Spec.MaxPodAgeSeconds, c.Spec.MaxPodAgeSeconds, 0, s.age)
	s.suspend = applyField(&s.o.Spec.Suspend, c.Spec.Suspend, false, s.suspend)
	return s
}

func applyField[T any](field, value *T, byDefault T, owned bool) bool {
	switch {
	case value != nil:
		*field = *value
	case owned:
		*field = byDefault
	}
	return value != nil
}
