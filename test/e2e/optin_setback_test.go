// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/test/framework"
)

// applyRestart applies a ScheduledRestart with the given target and spec, and returns kubectl's
// output.
func applyRestart(t *testing.T, name, target, spec string) string {
	t.Helper()
	out, err := cluster.Kubectl(fmt.Sprintf("apiVersion: tidekeeper.dev/v1\nkind: ScheduledRestart\nmetadata: {name: %s, namespace: default}\nspec: {targetRef: {kind: Deployment, name: %s}, %s}\n", name, target, spec), "apply", "-f", "-")
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return out
}

// TestOptInTimeZoneAndTargetAreSetBackAloud checks the same warnings and events as
// [TestOptInFieldsAreSetBackAloud], for the time zone and for the target, which the workload itself
// determines.
func TestOptInTimeZoneAndTargetAreSetBackAloud(t *testing.T) {
	cluster.StartManager(t)
	const name, other = "optin-setback-zone", "optin-setback-other"
	d := deployment(name, 0, app)
	d.Annotations = map[string]string{
		tidekeeperv1.OptInAnnotation: "true", tidekeeperv1.OptInScheduleAnnotation: "0 3 * * *", tidekeeperv1.OptInTimeZoneAnnotation: "Europe/Rome",
	}
	cluster.Apply(t, d)
	want := wanted{Schedule: "0 3 * * *", TimeZone: "Europe/Rome"}
	eventuallyOptIn(t, name, want)
	framework.Eventually(t, "the policy is in force, and warns", func() error {
		out := applyRestart(t, name, other, `schedule: "0 3 * * *", timeZone: Europe/Berlin`)
		for _, want := range []string{
			"the annotation tidekeeper.dev/restart-time-zone of Deployment " + name + " says the timeZone, which will be set back to it",
			"the annotation tidekeeper.dev/scheduled-restart of Deployment " + name + " says the targetRef, which will be set back to it: create another ScheduledRestart",
		} {
			if !strings.Contains(out, "Warning: ") || !strings.Contains(out, want) {
				return fmt.Errorf("apply does not say %q:\n%s", want, out)
			}
		}
		return nil
	})
	if r := eventuallyOptIn(t, name, want); r.Spec.TargetRef.Name != name {
		framework.Eventually(t, "its target is set back", func() error { return diff(name, restartNamed(t, name).Spec.TargetRef.Name) })
	}
	for _, said := range []string{
		`timeZone "Europe/Berlin" was reverted to "Europe/Rome", the value of the annotation tidekeeper.dev/restart-time-zone of Deployment ` + name,
		"targetRef Deployment " + other + " was reverted to Deployment " + name,
	} {
		framework.Eventually(t, "an event says "+said, func() error {
			for _, event := range cluster.Events(t, "ScheduledRestart", name) {
				if strings.HasPrefix(event, "Warning AnnotationWins: ") && strings.Contains(event, said) {
					return nil
				}
			}
			return errors.New("there is none")
		})
	}
}

// TestOptInFieldsAreSetBackAloud checks that applying a ScheduledRestart that contradicts its
// workload's annotations results in a warning from the apply, and in an event about the object.
// Fields without an annotation keep the applied value, without a warning.
func TestOptInFieldsAreSetBackAloud(t *testing.T) {
	cluster.StartManager(t)
	const name = "optin-setback"
	d := deployment(name, 0, app)
	d.Annotations = map[string]string{tidekeeperv1.OptInAnnotation: "true", tidekeeperv1.OptInScheduleAnnotation: "0 3 * * *", tidekeeperv1.OptInMaxPodAgeAnnotation: "604800"}
	cluster.Apply(t, d)
	eventuallyOptIn(t, name, wanted{Schedule: "0 3 * * *", MaxPodAgeSeconds: 604800})
	apply := func(spec string) string {
		t.Helper()
		return applyRestart(t, name, name, spec)
	}
	const theirs = `schedule: "30 2 * * 0", maxPodAgeSeconds: 7200, timeZone: Europe/Berlin`
	framework.Eventually(t, "the policy is in force, and warns", func() error {
		out := apply(theirs)
		for _, want := range []string{
			"the annotation tidekeeper.dev/restart-schedule of Deployment " + name + " says the schedule, which will be set back to it: change it there, or remove it",
			"the annotation tidekeeper.dev/restart-max-pod-age-seconds of Deployment " + name + " says maxPodAgeSeconds",
		} {
			if !strings.Contains(out, "Warning: ") || !strings.Contains(out, want) {
				return fmt.Errorf("apply does not say %q:\n%s", want, out)
			}
		}
		if strings.Contains(out, "timeZone") {
			return fmt.Errorf("a field without an annotation:\n%s", out)
		}
		return nil
	})
	framework.Eventually(t, "it is set back, and an event about it says so", func() error {
		o := restartNamed(t, name)
		if o.Spec.Schedule != "0 3 * * *" || o.Spec.MaxPodAgeSeconds != 604800 || o.Spec.TimeZone != "Europe/Berlin" {
			return fmt.Errorf("its spec is %+v", o.Spec)
		}
		list := &corev1.EventList{}
		if err := cluster.List(t.Context(), list, client.InNamespace("default"), client.MatchingFields{"involvedObject.kind": "ScheduledRestart", "involvedObject.name": name}); err != nil {
			return err
		}
		for _, e := range list.Items {
			if e.Reason == tidekeeperv1.EventAnnotationWins && e.Type == corev1.EventTypeWarning && strings.HasPrefix(e.Message, `schedule "30 2 * * 0" was reverted to "0 3 * * *", the value of the annotation tidekeeper.dev/restart-schedule of Deployment `+name+": change") {
				return nil
			}
		}
		return errors.New("there is no event")
	})
	// Fields that agree with the annotations, or have no annotation, cause no warning.
	for _, spec := range []string{`schedule: "0 3 * * *", maxPodAgeSeconds: 604800`, `schedule: "0 3 * * *", maxPodAgeSeconds: 604800, historyLimit: 7`} {
		if out := apply(spec); strings.Contains(out, "Warning: ") {
			t.Errorf("apply of %s:\n%s", spec, out)
		}
	}
}
