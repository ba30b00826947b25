// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/test/framework"
)

// TestDefaultScheduleIsInTheSpec checks that the default schedule is written to the spec, where
// kubectl get shows it. It must stay when the age of pods is limited later, even if the same
// manifest is applied again. It must not be written to a spec that limits the age of pods from the
// start, nor again after a user has removed it.
func TestDefaultScheduleIsInTheSpec(t *testing.T) {
	manager := cluster.StartManager(t)
	const name = "default-schedule"
	manifest := func(fields string) string {
		return fmt.Sprintf("apiVersion: tidekeeper.dev/v1\nkind: ScheduledRestart\nmetadata: {name: %s, namespace: default}\nspec: {suspend: true, targetRef: {kind: Deployment, name: none}%s}\n", name, fields)
	}
	r := framework.ScheduledRestart(name)
	t.Cleanup(func() { cluster.Delete(t, r) })
	expect := func(what string, schedule tidekeeperv1.CronExpression, events int) {
		t.Helper()
		framework.Eventually(t, what, func() error {
			cluster.Refresh(t, r)
			said := slices.DeleteFunc(cluster.Events(t, "ScheduledRestart", name), func(e string) bool {
				return e != `Normal ScheduleDefaulted: spec.schedule is now "0 0 * * *", the default, as there was neither a schedule nor maxPodAgeSeconds nor onConfigChange`
			})
			if r.Status.ObservedGeneration != r.Generation {
				return fmt.Errorf("generation %d of %d was observed", r.Status.ObservedGeneration, r.Generation)
			}
			return diff(fmt.Sprintf("%s, %d events", schedule, events), fmt.Sprintf("%s, %d events", r.Spec.Schedule, len(said)))
		})
		manager.AssertIdle(t)
		if cluster.Refresh(t, r); r.Spec.Schedule != schedule {
			t.Errorf("%s: the schedule became %q", what, r.Spec.Schedule)
		}
	}
	cluster.MustKubectl(t, manifest(""), "apply", "-f", "-")
	expect("it has the default", "0 0 * * *", 1)
	if out := cluster.MustKubectl(t, "", "get", "eru", name, "--no-headers"); !strings.Contains(out, " 0 0 * * * ") {
		t.Errorf("kubectl get says %q", out)
	}
	cluster.MustKubectl(t, manifest(""), "apply", "-f", "-")
	expect("the same manifest again", "0 0 * * *", 1)
	cluster.MustKubectl(t, manifest(", maxPodAgeSeconds: 86400"), "apply", "-f", "-")
	expect("the age is limited as well", "0 0 * * *", 1)
	cluster.MustKubectl(t, manifest(", maxPodAgeSeconds: 86400"), "apply", "--server-side", "--force-conflicts", "-f", "-")
	expect("applied by the server", "0 0 * * *", 1)
	cluster.MustKubectl(t, "", "patch", "eru", name, "--type=merge", "-p", `{"spec":{"schedule":null}}`)
	expect("a user has removed it", "", 1)
	cluster.MustKubectl(t, manifest(""), "replace", "-f", "-")
	framework.Eventually(t, "nothing is left that triggers restarts", func() error {
		cluster.Refresh(t, r)
		return diff(tidekeeperv1.CronExpression("0 0 * * *"), r.Spec.Schedule)
	})

	cluster.Delete(t, r)
	cluster.MustKubectl(t, manifest(", maxPodAgeSeconds: 86400"), "apply", "-f", "-")
	framework.Eventually(t, "it was observed", func() error {
		cluster.Refresh(t, r)
		return diff(r.Generation, r.Status.ObservedGeneration)
	})
	manager.AssertIdle(t)
	if cluster.Refresh(t, r); r.Spec.Schedule != "" {
		t.Errorf("with an age from the start the schedule is %q", r.Spec.Schedule)
	}
}

// TestOptIn_DefaultSchedule checks that an opt-in without a schedule also gets the default
// schedule, and that an event on its workload reports how an annotation for the age of pods affects
// it.
func TestOptIn_DefaultSchedule(t *testing.T) {
	cluster.StartManager(t)
	const name = "optin-default"
	w := optInWorkload("Deployment", name, optInKey, "true")
	cluster.Apply(t, w)
	framework.Eventually(t, "the schedule is the default", func() error {
		r := restartNamed(t, name)
		if r == nil {
			return fmt.Errorf("there is none")
		}
		return diff(tidekeeperv1.CronExpression("0 0 * * *"), r.Spec.Schedule)
	})
	annotate(t, w, tidekeeperv1.OptInMaxPodAgeAnnotation, "86400")
	cluster.EventuallyEvent(t, "Deployment", name, `Normal ScheduledRestartUpdated: updated ScheduledRestart `+name+`: enabled, maxPodAgeSeconds 86400; its schedule "0 0 * * *" stays, and restarts the workload as well`)
	if r := restartNamed(t, name); r.Spec.Schedule != "0 0 * * *" || r.Spec.MaxPodAgeSeconds != 86400 || r.Spec.Suspend {
		t.Errorf("the spec is %+v", r.Spec)
	}
}
