// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"regexp"
	"testing"

	"tidekeeper.dev/tidekeeper/test/framework"
)

// TestOptIn_FalseSuspends checks that the annotation value "false" suspends the ScheduledRestart
// and keeps the object with its manual edits. When the opt-in is switched on again, the object is
// still the same.
func TestOptIn_FalseSuspends(t *testing.T) {
	cluster.StartManager(t)
	forEachKind(t, func(t *testing.T, kind, name string) {
		w := optInWorkload(kind, name, optInKey, "true", scheduleKey, "0 3 * * *")
		cluster.Apply(t, w)
		first := eventuallyOptIn(t, name, wanted{Schedule: "0 3 * * *"})
		cluster.Change(t, first, func() { first.Spec.FailureLimit = 7 })

		annotate(t, w, optInKey, "false")
		off := eventuallyOptIn(t, name, wanted{Schedule: "0 3 * * *", Suspend: true})
		annotate(t, w, scheduleKey, "nonsense")
		annotate(t, w, scheduleKey, "0 4 * * *")
		annotate(t, w, optInKey, "true")
		on := eventuallyOptIn(t, name, wanted{Schedule: "0 4 * * *"})
		if off.UID != first.UID || on.UID != first.UID || on.Spec.FailureLimit != 7 {
			t.Errorf("it was created again, or lost what a person had set: %s %s %s, failureLimit %d", first.UID, off.UID, on.UID, on.Spec.FailureLimit)
		}
	})

	// The annotation value "false" does not create a ScheduledRestart.
	never := optInWorkload("Deployment", "off-never", optInKey, "false")
	cluster.Apply(t, never)
	settled(t)
	if restart := restartNamed(t, "off-never"); restart != nil {
		t.Errorf("a ScheduledRestart is made for an opt-in that is switched off: %v", restart.Spec)
	}
}

// TestOptIn_LogsEachStep checks that the manager logs each write for an opt-in with the names of
// the objects, and at debug level also a reconcile without a write.
func TestOptIn_LogsEachStep(t *testing.T) {
	manager := cluster.StartManager(t, "--log-level=debug")
	logsAt := func(level, want string) {
		t.Helper()
		line := regexp.MustCompile(`(?m)^.*level=` + level + ` .*` + want)
		framework.Eventually(t, "the log has "+want, func() error {
			if !line.MatchString(manager.Log()) {
				return fmt.Errorf("it has no such line")
			}
			return nil
		})
	}
	logs := func(want string) {
		t.Helper()
		logsAt("info", want)
	}
	w := optInWorkload("Deployment", "logged", optInKey, "true", scheduleKey, "0 3 * * *")
	cluster.Apply(t, w)
	logs(`ScheduledRestart.name=logged .*change="created ScheduledRestart logged: enabled, schedule`)
	annotate(t, w, scheduleKey, "0 4 * * *")
	logsAt("debug", `msg="There is nothing to do for the annotations of a workload".* kind=Deployment namespace=default name=logged`)
	logs(`ScheduledRestart.name=logged .*change="updated ScheduledRestart logged: .*0 4`)
	annotate(t, w, optInKey, "")
	logs(`ScheduledRestart.name=logged .*change="deleted ScheduledRestart logged: the workload no longer has the annotation`)

	gone := optInWorkload("Deployment", "logged-gone", optInKey, "true")
	cluster.Apply(t, gone)
	eventuallyOptIn(t, "logged-gone", wanted{Suspend: true})
	cluster.Delete(t, gone)
	logsAt("debug", `msg="There is no such workload".* kind=Deployment namespace=default name=logged-gone`)
}
