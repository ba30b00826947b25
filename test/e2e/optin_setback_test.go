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

// A user who applies a ScheduledRestart of which annotations of the workload say otherwise gets a
// warning from the apply, and an event about the object itself. Fields that no annotation names stay,
// without a word.
func TestOptInFieldsAreSetBackAloud(t *testing.T) {
	cluster.StartManager(t)
	const name = "optin-setback"
	d := deployment(name, 0, app)
	d.Annotations = map[string]string{tidekeeperv1.OptInAnnotation: "true", tidekeeperv1.OptInScheduleAnnotation: "0 3 * * *", tidekeeperv1.OptInMaxPodAgeAnnotation: "604800"}
	cluster.Apply(t, d)
	eventuallyOptIn(t, name, wanted{Schedule: "0 3 * * *", MaxPodAgeSeconds: 604800})
	apply := func(spec string) string {
		t.Helper()
		out, err := cluster.Kubectl(fmt.Sprintf("apiVersion: tidekeeper.dev/v1\nkind: ScheduledRestart\nmetadata: {name: %s, namespace: default}\nspec: {targetRef: {kind: Deployment, name: %[1]s}, %s}\n", name, spec), "apply", "-f", "-")
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return out
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
	// What agrees with the annotations, or is named by none, is not warned of.
	for _, spec := range []string{`schedule: "0 3 * * *", maxPodAgeSeconds: 604800`, `schedule: "0 3 * * *", maxPodAgeSeconds: 604800, historyLimit: 7`} {
		if out := apply(spec); strings.Contains(out, "Warning: ") {
			t.Errorf("apply of %s:\n%s", spec, out)
		}
	}
}
