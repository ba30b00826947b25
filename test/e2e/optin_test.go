// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	applyv1 "tidekeeper.dev/tidekeeper/api/applyconfiguration/api/v1"
	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/test/framework"
)

const (
	optInKey    = "tidekeeper.dev/scheduled-restart"
	scheduleKey = "tidekeeper.dev/restart-schedule"
	timeZoneKey = "tidekeeper.dev/restart-time-zone"
	podAgeKey   = "tidekeeper.dev/restart-max-pod-age-seconds"
)

// TestOptIn_MakesASuspendedRestart checks that an annotated workload of each kind gets a suspended
// ScheduledRestart with the workload's name and a schedule for every midnight.
func TestOptIn_MakesASuspendedRestart(t *testing.T) {
	cluster.StartManager(t)
	forEachKind(t, func(t *testing.T, kind, name string) {
		w := optInWorkload(kind, name, optInKey, "true")
		cluster.Apply(t, w)
		got := eventuallyOptIn(t, name, wanted{Suspend: true})
		want := tidekeeperv1.TargetRef{Kind: kind, Name: name}
		if err := diff(want, got.Spec.TargetRef); err != nil {
			t.Errorf("target %v", err)
		}
		if !metav1.IsControlledBy(got, w) {
			t.Errorf("it is owned by %v, want the workload", got.OwnerReferences)
		}
		cluster.EventuallyEvent(t, kind, name, "Normal ScheduledRestartCreated: created ScheduledRestart "+name+": suspended")
	})
}

// TestOptIn_OtherValuesMakeNone checks that no ScheduledRestart is created without the annotation,
// or if its value is not "true". A value other than "true" and "false" must be reported.
func TestOptIn_OtherValuesMakeNone(t *testing.T) {
	cluster.StartManager(t)
	forEachKind(t, func(t *testing.T, kind, name string) {
		names := []string{name + "-none", name + "-false", name + "-yes", name + "-eru", name + "-schedule"}
		cluster.Apply(t, optInWorkload(kind, names[0]))
		cluster.Apply(t, optInWorkload(kind, names[1], optInKey, "false"))
		cluster.Apply(t, optInWorkload(kind, names[2], optInKey, "yes"))
		cluster.Apply(t, optInWorkload(kind, names[3], "mtsre.meitu.com/eru", "true"))
		cluster.Apply(t, optInWorkload(kind, names[4], scheduleKey, "0 3 * * *"))
		cluster.EventuallyEvent(t, kind, name+"-yes",
			`Warning InvalidOptIn: nothing is changed: tidekeeper.dev/scheduled-restart must be "true" or "false", not "yes"`)
		// Once the ScheduledRestart of a newer workload exists, the manager has seen all earlier
		// workloads.
		cluster.Apply(t, optInWorkload(kind, name, optInKey, "true"))
		eventuallyOptIn(t, name, wanted{Suspend: true})
		for _, name := range names {
			if restart := restartNamed(t, name); restart != nil {
				t.Errorf("there is a ScheduledRestart %s: %+v", name, restart.Spec)
			}
		}
	})
}

// TestOptIn_ScheduleAnnotations checks that the annotations for the schedule and the time zone set
// the corresponding fields, and that the schedule starts enabled. Edits of the annotations take
// effect, and removing them resets the fields.
func TestOptIn_ScheduleAnnotations(t *testing.T) {
	cluster.StartManager(t)
	forEachKind(t, func(t *testing.T, kind, name string) {
		w := optInWorkload(kind, name, optInKey, "true", scheduleKey, "0 3 * * *", timeZoneKey, "Europe/Berlin")
		cluster.Apply(t, w)
		first := eventuallyOptIn(t, name, wanted{Schedule: "0 3 * * *", TimeZone: "Europe/Berlin"})
		cluster.EventuallyEvent(t, kind, name, `Normal ScheduledRestartCreated: created ScheduledRestart `+name+`: enabled, schedule "0 3 * * *", time zone "Europe/Berlin"`)

		annotate(t, w, scheduleKey, "0 4 * * *")
		eventuallyOptIn(t, name, wanted{Schedule: "0 4 * * *", TimeZone: "Europe/Berlin"})
		annotate(t, w, timeZoneKey, "")
		eventuallyOptIn(t, name, wanted{Schedule: "0 4 * * *"})
		annotate(t, w, scheduleKey, "")
		eventuallyOptIn(t, name, wanted{Suspend: true})
		cluster.EventuallyEvent(t, kind, name, `Normal ScheduledRestartUpdated: updated ScheduledRestart `+name+`: suspended, schedule no longer set by an annotation`)

		annotate(t, w, timeZoneKey, "America/New_York")
		eventuallyOptIn(t, name, wanted{Suspend: true, TimeZone: "America/New_York"})
		annotate(t, w, scheduleKey, "@weekly")
		last := eventuallyOptIn(t, name, wanted{Schedule: "@weekly", TimeZone: "America/New_York"})
		if first.UID != last.UID {
			t.Error("the object was replaced")
		}
	})
}

// TestOptIn_AgeAnnotation checks that the annotation for the age of pods sets the field and enables
// the ScheduledRestart, with or without a schedule annotation. Without both annotations, it is
// suspended.
func TestOptIn_AgeAnnotation(t *testing.T) {
	cluster.StartManager(t)
	cluster.AddNodes(t, "s42-age", 1)
	const name = "s42-age"
	d := deployment(name, 1, app)
	d.Annotations = map[string]string{optInKey: "true", podAgeKey: "86400"}
	cluster.Apply(t, d)
	r := eventuallyOptIn(t, name, wanted{MaxPodAgeSeconds: 86400})
	cluster.EventuallyEvent(t, "Deployment", name, `Normal ScheduledRestartCreated: created ScheduledRestart `+name+`: enabled, maxPodAgeSeconds 86400`)
	eventuallyRestart(t, r, framework.Patience, "is due for the age of its pods, and has no schedule", func() error {
		if r.Status.NextAgeTime == nil || r.Status.NextScheduleTime != nil {
			return fmt.Errorf("status %+v", r.Status)
		}
		return nil
	})

	annotate(t, d, scheduleKey, "0 3 * * *")
	eventuallyOptIn(t, name, wanted{Schedule: "0 3 * * *", MaxPodAgeSeconds: 86400})
	annotate(t, d, podAgeKey, "1d")
	cluster.EventuallyEvent(t, "Deployment", name,
		`Warning InvalidOptIn: nothing is changed: tidekeeper.dev/restart-max-pod-age-seconds must be a number of seconds from 300 to 31536000, not "1d"`)
	eventuallyOptIn(t, name, wanted{Schedule: "0 3 * * *", MaxPodAgeSeconds: 86400})
	annotate(t, d, podAgeKey, "")
	eventuallyOptIn(t, name, wanted{Schedule: "0 3 * * *"})
	annotate(t, d, scheduleKey, "")
	eventuallyOptIn(t, name, wanted{Suspend: true})
}

// TestOptIn_HandEditsStand checks that the opt-in leaves fields without an annotation to the users
// who edit them.
func TestOptIn_HandEditsStand(t *testing.T) {
	cluster.StartManager(t)
	forEachKind(t, func(t *testing.T, kind, name string) {
		w := optInWorkload(kind, name, optInKey, "true")
		cluster.Apply(t, w)
		restart := eventuallyOptIn(t, name, wanted{Suspend: true})

		// Another client's server-side apply does not conflict either.
		if out, err := cluster.Kubectl(fmt.Sprintf(`{apiVersion: tidekeeper.dev/v1, kind: ScheduledRestart,
			metadata: {name: %s, namespace: default, labels: {team: one}}, spec: {historyLimit: 3, spreadSeconds: 60}}`, name),
			"apply", "--server-side", "-f", "-"); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		cluster.Change(t, restart, func() { restart.Spec.Schedule, restart.Spec.Suspend = "0 5 * * *", false })
		annotate(t, w, timeZoneKey, "Europe/Berlin")
		want := wanted{Schedule: "0 5 * * *", TimeZone: "Europe/Berlin"}
		restart = eventuallyOptIn(t, name, want)
		if err := diff("3 60 one", fmt.Sprint(restart.Spec.HistoryLimit, restart.Spec.SpreadSeconds, " ", restart.Labels["team"])); err != nil {
			t.Errorf("history limit, spread and label %v", err)
		}

		// The schedule annotation takes over the schedule, and enables the ScheduledRestart once.
		// If a user suspends it later, it stays suspended regardless of other changes.
		annotate(t, w, scheduleKey, "0 6 * * *")
		restart = eventuallyOptIn(t, name, wanted{Schedule: "0 6 * * *", TimeZone: "Europe/Berlin"})
		cluster.Change(t, restart, func() { restart.Spec.Suspend = true })
		annotate(t, w, scheduleKey, "0 7 * * *")
		restart = eventuallyOptIn(t, name, wanted{Schedule: "0 7 * * *", TimeZone: "Europe/Berlin", Suspend: true})

		// A manual edit of a field that an annotation sets is reverted.
		cluster.Change(t, restart, func() { restart.Spec.Schedule = "0 8 * * *" })
		eventuallyOptIn(t, name, wanted{Schedule: "0 7 * * *", TimeZone: "Europe/Berlin", Suspend: true})
		annotate(t, w, scheduleKey, "")
		eventuallyOptIn(t, name, wanted{TimeZone: "Europe/Berlin", Suspend: true})
	})
}

// TestOptIn_TakenAway checks that removing the annotation deletes the ScheduledRestart, even if no
// manager is running at that time. As long as the annotation exists, a deleted ScheduledRestart is
// recreated.
func TestOptIn_TakenAway(t *testing.T) {
	manager := cluster.StartManager(t)
	forEachKind(t, func(t *testing.T, kind, name string) {
		w := optInWorkload(kind, name, optInKey, "true", scheduleKey, "0 3 * * *")
		cluster.Apply(t, w)
		first := eventuallyOptIn(t, name, wanted{Schedule: "0 3 * * *"})
		cluster.Delete(t, first)
		framework.Eventually(t, "there is a new one", func() error {
			second := restartNamed(t, name)
			if second == nil || second.UID == first.UID {
				return errors.New("not yet")
			}
			return nil
		})
		annotate(t, w, optInKey, "")
		eventuallyGone(t, first)
		cluster.EventuallyEvent(t, kind, name,
			"Normal ScheduledRestartDeleted: deleted ScheduledRestart "+name+": the workload no longer has the annotation tidekeeper.dev/scheduled-restart")
	})

	leaves, comes := optInWorkload("Deployment", "s42-leaves", optInKey, "true"), optInWorkload("DaemonSet", "s42-comes")
	cluster.Apply(t, leaves)
	cluster.Apply(t, comes)
	restart := eventuallyOptIn(t, "s42-leaves", wanted{Suspend: true})
	manager.Kill(t)
	annotate(t, leaves, optInKey, "")
	annotate(t, comes, optInKey, "true")
	cluster.StartManager(t)
	eventuallyGone(t, restart)
	eventuallyOptIn(t, "s42-comes", wanted{Suspend: true})
}

// TestOptIn_APersonsOwnIsNotTouched checks that the opt-in never changes a user's own
// ScheduledRestart.
func TestOptIn_APersonsOwnIsNotTouched(t *testing.T) {
	cluster.StartManager(t)
	forEachKind(t, func(t *testing.T, kind, name string) {
		own := &tidekeeperv1.ScheduledRestart{
			ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: metav1.NamespaceDefault},
			Spec:       tidekeeperv1.ScheduledRestartSpec{TargetRef: tidekeeperv1.TargetRef{Kind: kind, Name: name}, Schedule: "0 9 * * *", Suspend: true},
		}
		cluster.Apply(t, own)
		before := own.DeepCopy()
		w := optInWorkload(kind, name, optInKey, "true", scheduleKey, "0 3 * * *")
		cluster.Apply(t, w)
		exists := "Warning ScheduledRestartExists: ScheduledRestart " + name + " exists already and is not from this opt-in: delete it, or remove the annotation tidekeeper.dev/scheduled-restart"
		cluster.EventuallyEvent(t, kind, name, exists)
		annotate(t, w, scheduleKey, "0 4 * * *")
		annotate(t, w, optInKey, "")
		settled(t)
		cluster.Refresh(t, own)
		if err := errors.Join(diff(before.Spec, own.Spec), diff(before.Annotations, own.Annotations), diff(before.OwnerReferences, own.OwnerReferences)); err != nil || own.UID != before.UID {
			t.Errorf("it was touched: %v", err)
		}

		// Once the user's ScheduledRestart is deleted, the opt-in creates its own. A user takes
		// over the opt-in's ScheduledRestart by removing the annotation that marks it as created by
		// an opt-in.
		annotate(t, w, optInKey, "true")
		cluster.Delete(t, own)
		made := eventuallyOptIn(t, name, wanted{Schedule: "0 4 * * *"})
		cluster.Change(t, made, func() {
			delete(made.Annotations, tidekeeperv1.AppliedAnnotation)
			made.OwnerReferences, made.Spec.Schedule = nil, "0 10 * * *"
		})
		annotate(t, w, optInKey, "")
		settled(t)
		if kept := restartNamed(t, name); kept == nil || kept.UID != made.UID || kept.Spec.Schedule != "0 10 * * *" {
			t.Errorf("it was not left to its new owner: %+v", kept)
		}
	})
}

// TestOptIn_BadValues checks that an invalid annotation value results in an event on the workload
// and nothing else: no ScheduledRestart is created or changed. A value that the manager recognizes
// as invalid must not be sent to the API server. A value that the API server rejects must be
// retried with growing delays.
func TestOptIn_BadValues(t *testing.T) {
	cluster.StartManager(t)
	audit := cluster.Audit(t, "tidekeeper/")
	for i, tt := range []struct{ key, value, want string }{
		{scheduleKey, "0 0 3 * * *", `tidekeeper.dev/restart-schedule: schedule "0 0 3 * * *": has 6 fields: write five`},
		{scheduleKey, "0 3 30 2 *", `tidekeeper.dev/restart-schedule: schedule "0 3 30 2 *": never happens: no month it names has a day it names`},
		{timeZoneKey, "Mars/Olympus", `tidekeeper.dev/restart-time-zone: unknown time zone "Mars/Olympus": write a name from the IANA database, such as Europe/Berlin or UTC`},
		// Only the API server rejects a tab in the schedule and an overlong schedule.
		{scheduleKey, "0\t3 * * *", `spec.schedule: Invalid value: `},
		{scheduleKey, strings.TrimSuffix(strings.Repeat("0,", 130), ",") + " 3 * * *", `spec.schedule: Too long: may not be more than 256 bytes`},
	} {
		name := fmt.Sprintf("s42-bad-%d", i)
		cluster.Apply(t, optInWorkload("Deployment", name, optInKey, "true", tt.key, tt.value))
		cluster.EventuallyEvent(t, "Deployment", name, "Warning InvalidOptIn: nothing is changed: "+tt.want)
		if restart := restartNamed(t, name); restart != nil {
			t.Errorf("%q made a ScheduledRestart: %+v", tt.value, restart.Spec)
		}
	}
	// The two values that were sent to the API server are retried after one second, after two more
	// seconds, and so on.
	tries := map[string][]time.Time{}
	framework.Eventually(t, "both are retried twice", func() error {
		for _, write := range writesTo(t, audit, "scheduledrestarts") {
			if write.Code != http.StatusUnprocessableEntity {
				t.Errorf("accepted: %s", write)
			}
			tries[write.Name] = append(tries[write.Name], write.Received)
		}
		if len(tries["s42-bad-3"]) < 3 || len(tries["s42-bad-4"]) < 3 {
			return fmt.Errorf("the tries are %v", tries)
		}
		return nil
	})
	if err := diff([]string{"s42-bad-3", "s42-bad-4"}, slices.Sorted(maps.Keys(tries))); err != nil {
		t.Errorf("sent to the API server: %v", err)
	}
	for name, at := range tries {
		for i, wait := 1, 900*time.Millisecond; i < len(at); i, wait = i+1, 2*wait {
			if waited := at[i].Sub(at[i-1]); waited < wait {
				t.Errorf("%s was retried after %s, want after %s or more", name, waited, wait)
			}
		}
	}

	w := optInWorkload("Deployment", "s42-bad", optInKey, "true", scheduleKey, "0 3 * * *")
	cluster.Apply(t, w)
	want := wanted{Schedule: "0 3 * * *"}
	eventuallyOptIn(t, w.GetName(), want)
	for _, bad := range [][2]string{{scheduleKey, "nonsense"}, {timeZoneKey, "Mars/Olympus"}, {optInKey, "TRUE"}} {
		annotate(t, w, bad[0], bad[1])
	}
	cluster.EventuallyEvent(t, "Deployment", w.GetName(), `Warning InvalidOptIn: nothing is changed: tidekeeper.dev/scheduled-restart must be "true" or "false", not "TRUE"`)
	restart := restartNamed(t, w.GetName())
	if restart == nil || diff(want, wantedOf(restart)) != nil {
		t.Errorf("it was changed: %+v", restart)
	}
	// Once the values are corrected, the annotations take effect again.
	annotate(t, w, optInKey, "true", timeZoneKey, "UTC", scheduleKey, "0 4 * * *")
	eventuallyOptIn(t, w.GetName(), wanted{Schedule: "0 4 * * *"})
}

// TestOptIn_AtRestNothingIsWritten checks that a manager without work writes nothing, even directly
// after its start.
func TestOptIn_AtRestNothingIsWritten(t *testing.T) {
	manager := cluster.StartManager(t)
	for i, kind := range []string{"Deployment", "StatefulSet", "DaemonSet"} {
		name := fmt.Sprintf("s42-rest-%d", i)
		w := optInWorkload(kind, name, optInKey, "true", scheduleKey, "0 3 1 1 *")
		cluster.Apply(t, w)
		cluster.Apply(t, optInWorkload(kind, name+"-by-hand", optInKey, "true"))
		eventuallyOptIn(t, name, wanted{Schedule: "0 3 1 1 *"})
		restart := eventuallyOptIn(t, name+"-by-hand", wanted{Suspend: true})
		cluster.Change(t, restart, func() { restart.Spec.Schedule, restart.Spec.Suspend = "0 4 1 1 *", false })
		for _, r := range []*tidekeeperv1.ScheduledRestart{restartNamed(t, name), restart} {
			eventuallyRestart(t, r, framework.Patience, "has a status of its spec", func() error { return diff(r.Generation, r.Status.ObservedGeneration) })
		}
	}
	settled(t)
	manager.AssertIdle(t)
	manager.Stop(t)
	manager = cluster.StartManager(t)
	audit := cluster.Audit(t, "tidekeeper/")
	// The manager is busy after its start, and other clients write to workloads.
	touched := optInWorkload("Deployment", "s42-rest-0")
	for i := range 5 {
		annotate(t, touched, "example.com/deployed", fmt.Sprint(i))
	}
	// Once a later opt-in is settled, the manager has handled all of these writes.
	settled(t)
	manager.AssertIdle(t)
	manager.Stop(t)
	var writes []framework.Request
	for _, request := range audit.Requests(t) {
		if request.Writes() && request.Resource != "selfsubjectaccessreviews" && !strings.HasPrefix(request.Name, "settled-") {
			writes = append(writes, request)
		}
	}
	if len(writes) > 0 {
		t.Errorf("at rest it writes %v", writes)
	}
}

// TestOptIn_CreationDoesNotOverwrite checks that the opt-in's request to create a ScheduledRestart
// cannot overwrite an object that another client has just created. The API server ensures this: an
// apply whose resourceVersion differs from the object's is a conflict, but the same apply creates
// the object if it does not exist.
func TestOptIn_CreationDoesNotOverwrite(t *testing.T) {
	const name = "s42-moment"
	apply := func() error {
		return cluster.Client.Apply(t.Context(), applyv1.ScheduledRestart(name, metav1.NamespaceDefault).WithResourceVersion("1").
			WithSpec(applyv1.ScheduledRestartSpec().WithTargetRef(applyv1.TargetRef().WithKind("Deployment").WithName(name))),
			client.FieldOwner("tidekeeper-opt-in"), client.ForceOwnership)
	}
	if err := apply(); err != nil {
		t.Fatalf("apply when it does not exist: %v", err)
	}
	t.Cleanup(func() {
		cluster.Delete(t, &tidekeeperv1.ScheduledRestart{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: metav1.NamespaceDefault}})
	})
	if err := apply(); !apierrors.IsConflict(err) {
		t.Errorf("apply when it exists: got %v, want a conflict", err)
	}
}
