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

// An annotated workload of each kind gets a ScheduledRestart with its name, suspended,
// for every midnight.
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

// Without the annotation, or with another value, no ScheduledRestart is created. A
// value that is neither true nor false is reported.
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
		// When this one exists, the manager has seen all previous ones.
		cluster.Apply(t, optInWorkload(kind, name, optInKey, "true"))
		eventuallyOptIn(t, name, wanted{Suspend: true})
		for _, name := range names {
			if restart := restartNamed(t, name); restart != nil {
				t.Errorf("there is a ScheduledRestart %s: %+v", name, restart.Spec)
			}
		}
	})
}

// Annotations for the schedule and the time zone set these fields, and the schedule
// starts enabled. Edits of the annotations take effect, and their removal resets the
// fields.
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

// An annotation for the age of pods sets it and enables the ScheduledRestart, with a schedule or
// without one. When neither is left, it is suspended.
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

// Fields that no annotation names belong to the users who edit them.
func TestOptIn_HandEditsStand(t *testing.T) {
	cluster.StartManager(t)
	forEachKind(t, func(t *testing.T, kind, name string) {
		w := optInWorkload(kind, name, optInKey, "true")
		cluster.Apply(t, w)
		restart := eventuallyOptIn(t, name, wanted{Suspend: true})

		// There is no conflict with a server-side apply of another client either.
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

		// An annotation for the schedule takes over, and enables the ScheduledRestart once:
		// if a user suspends it later, it stays suspended, whatever else changes.
		annotate(t, w, scheduleKey, "0 6 * * *")
		restart = eventuallyOptIn(t, name, wanted{Schedule: "0 6 * * *", TimeZone: "Europe/Berlin"})
		cluster.Change(t, restart, func() { restart.Spec.Suspend = true })
		annotate(t, w, scheduleKey, "0 7 * * *")
		restart = eventuallyOptIn(t, name, wanted{Schedule: "0 7 * * *", TimeZone: "Europe/Berlin", Suspend: true})

		// A field that an annotation names is reverted.
		cluster.Change(t, restart, func() { restart.Spec.Schedule = "0 8 * * *" })
		eventuallyOptIn(t, name, wanted{Schedule: "0 7 * * *", TimeZone: "Europe/Berlin", Suspend: true})
		annotate(t, w, scheduleKey, "")
		eventuallyOptIn(t, name, wanted{TimeZone: "Europe/Berlin", Suspend: true})
	})
}

// Removing the annotation deletes the ScheduledRestart, even if no manager is running
// at that time. While the annotation exists, a deleted one is created again.
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

// A ScheduledRestart that a user has created is never touched.
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

		// As soon as it is deleted, the opt-in creates its own. A user takes it over by
		// removing the annotation that marks it as created by an opt-in.
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

// A bad value causes an event on the workload, and nothing else: no ScheduledRestart is
// created or changed. A value that the manager knows to be bad is not sent to the API
// server, and what the API server refuses is retried with growing delays.
func TestOptIn_BadValues(t *testing.T) {
	cluster.StartManager(t)
	audit := cluster.Audit(t, "tidekeeper/")
	for i, tt := range []struct{ key, value, want string }{
		{scheduleKey, "0 0 3 * * *", `tidekeeper.dev/restart-schedule: schedule "0 0 3 * * *": has 6 fields: write five`},
		{scheduleKey, "0 3 30 2 *", `tidekeeper.dev/restart-schedule: schedule "0 3 30 2 *": never happens: no month it names has a day it names`},
		{timeZoneKey, "Mars/Olympus", `tidekeeper.dev/restart-time-zone: unknown time zone "Mars/Olympus": write a name from the IANA database, such as Europe/Berlin or UTC`},
		// Only the API server refuses these: a tab, and a length.
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
	// Two were sent, and retried after one second, after two more, and so on.
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
	// After a correction, the annotations take effect again.
	annotate(t, w, optInKey, "true", timeZoneKey, "UTC", scheduleKey, "0 4 * * *")
	eventuallyOptIn(t, w.GetName(), wanted{Schedule: "0 4 * * *"})
}

// When there is nothing to do, nothing is written, not even by a manager that has just
// been started.
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
	}
	settled(t)
	manager.AssertIdle(t)
	manager.Stop(t)
	manager = cluster.StartManager(t)
	audit := cluster.Audit(t, "tidekeeper/")
	// The first actions of the manager, and writes of other clients to workloads.
	touched := optInWorkload("Deployment", "s42-rest-0")
	for i := range 5 {
		annotate(t, touched, "example.com/deployed", fmt.Sprint(i))
	}
	// What comes after that is done, and nothing is left to do.
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

// The opt-in's request to create cannot overwrite an object that another client has
// just created. The API server ensures that: an apply with a resourceVersion that is
// not the object's is a conflict, and creates the object if it does not exist.
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
