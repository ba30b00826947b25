// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package optin

import (
	"cmp"
	"encoding/json"
	"maps"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	applyv1 "tidekeeper.dev/tidekeeper/api/applyconfiguration/api/v1"
	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/workload"
)

const (
	scheduleKey = tidekeeperv1.OptInScheduleAnnotation
	zoneKey     = tidekeeperv1.OptInTimeZoneAnnotation
	ageKey      = tidekeeperv1.OptInMaxPodAgeAnnotation
)

// web returns the metadata of the Deployment web, the workload of these tests.
func web(annotations map[string]string) *metav1.ObjectMeta {
	return &metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "web-1", Annotations: annotations}
}

func TestDecide(t *testing.T) {
	deleting := web(in("true"))
	deleting.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
	const (
		exists   = "Warning ScheduledRestartExists: ScheduledRestart web exists already and is not from this opt-in: delete it, or remove the annotation tidekeeper.dev/scheduled-restart"
		deleted  = "Normal ScheduledRestartDeleted: deleted ScheduledRestart web: the workload no longer has the annotation tidekeeper.dev/scheduled-restart"
		badValue = `Warning InvalidOptIn: nothing is changed: tidekeeper.dev/scheduled-restart must be "true" or "false", not "yes"`
		badZone  = `Warning InvalidOptIn: nothing is changed: tidekeeper.dev/restart-time-zone: unknown time zone "Mars": write a name from the IANA database, such as Europe/Berlin or UTC`
	)
	for _, tt := range []decideRow{
		// Cases in which a ScheduledRestart is created.
		{
			name: "opted in", workload: web(in("true")),
			want: create, event: "Normal ScheduledRestartCreated: created ScheduledRestart web: suspended",
			spec: map[string]any{"suspend": true}, record: `{"suspend":true}`,
		},
		{
			name: "opted in with a schedule", workload: web(in("true", scheduleKey, "0 3 * * *")),
			want: create, event: `Normal ScheduledRestartCreated: created ScheduledRestart web: enabled, schedule "0 3 * * *"`,
			spec: map[string]any{"suspend": false, "schedule": "0 3 * * *"}, record: `{"schedule":"0 3 * * *","suspend":false}`,
		},
		{
			name: "opted in with a time zone only", workload: web(in("true", zoneKey, "Europe/Berlin")),
			want: create, event: `Normal ScheduledRestartCreated: created ScheduledRestart web: suspended, time zone "Europe/Berlin"`,
			spec: map[string]any{"suspend": true, "timeZone": "Europe/Berlin"}, record: `{"timeZone":"Europe/Berlin","suspend":true}`,
		},
		{
			name: "opted in with an age of pods", workload: web(in("true", ageKey, "86400")),
			want: create, event: `Normal ScheduledRestartCreated: created ScheduledRestart web: enabled, maxPodAgeSeconds 86400`,
			spec: map[string]any{"suspend": false, "maxPodAgeSeconds": 86400.}, record: `{"maxPodAgeSeconds":86400,"suspend":false}`,
		},

		// Cases in which no ScheduledRestart is created.
		{name: "no annotation", workload: web(nil)},
		{name: "opted out", workload: web(in("false"))},
		{name: "another value", workload: web(in("yes")), want: complain, event: badValue},
		{name: "a schedule alone", workload: web(map[string]string{scheduleKey: "0 3 * * *"})},
		{name: "an unknown zone", workload: web(in("true", scheduleKey, "0 3 * * *", zoneKey, "Mars")), want: complain, event: badZone},
		{name: "a workload that is being deleted", workload: deleting},

		// Cases in which the ScheduledRestart is updated to match the annotations.
		{name: "nothing new", workload: web(in("true")), existing: Made(`{"suspend":true}`)},
		{
			name: "nothing new, all set", workload: web(in("true", scheduleKey, "0 3 * * *", zoneKey, "Europe/Berlin")),
			existing: Made(`{"schedule":"0 3 * * *","timeZone":"Europe/Berlin","suspend":false}`),
		},
		{
			name: "a schedule appears", workload: web(in("true", scheduleKey, "0 3 * * *")), existing: Made(`{"suspend":true}`),
			want: update, event: `Normal ScheduledRestartUpdated: updated ScheduledRestart web: enabled, schedule "0 3 * * *"`,
			spec: map[string]any{"suspend": false, "schedule": "0 3 * * *"}, record: `{"schedule":"0 3 * * *","suspend":false}`,
		},
		{name: "nothing new, with an age of pods", workload: web(in("true", ageKey, "86400")), existing: Made(`{"maxPodAgeSeconds":86400,"suspend":false}`)},
		{
			name: "an age of pods appears", workload: web(in("true", ageKey, "86400")), existing: Made(`{"suspend":true}`),
			want: update, event: `Normal ScheduledRestartUpdated: updated ScheduledRestart web: enabled, maxPodAgeSeconds 86400`,
			spec: map[string]any{"suspend": false, "maxPodAgeSeconds": 86400.}, record: `{"maxPodAgeSeconds":86400,"suspend":false}`,
		},
		{
			name:     "a schedule goes and the age of pods stays",
			workload: web(in("true", ageKey, "86400")), existing: Made(`{"schedule":"@daily","maxPodAgeSeconds":86400,"suspend":false}`),
			want: update, event: `Normal ScheduledRestartUpdated: updated ScheduledRestart web: enabled, schedule no longer set by an annotation, maxPodAgeSeconds 86400`,
			spec: map[string]any{"suspend": false, "maxPodAgeSeconds": 86400.}, record: `{"maxPodAgeSeconds":86400,"suspend":false}`,
		},
		{
			name: "the age of pods goes", workload: web(in("true")), existing: Made(`{"maxPodAgeSeconds":86400,"suspend":false}`),
			want: update, event: `Normal ScheduledRestartUpdated: updated ScheduledRestart web: suspended, maxPodAgeSeconds no longer set by an annotation`,
			spec: map[string]any{"suspend": true}, record: `{"suspend":true}`,
		},
		{
			name: "the age of pods is changed by hand", workload: web(in("true", ageKey, "86400")), existing: Made(`{"maxPodAgeSeconds":86400,"suspend":false}`).MaxPodAge(600),
			want: update, event: `Normal ScheduledRestartUpdated: updated ScheduledRestart web: enabled, maxPodAgeSeconds 86400`,
			spec: map[string]any{"suspend": false, "maxPodAgeSeconds": 86400.}, record: `{"maxPodAgeSeconds":86400,"suspend":false}`,
		},
		{
			name: "a schedule is edited", workload: web(in("true", scheduleKey, "0 4 * * *")), existing: Made(`{"schedule":"0 3 * * *","suspend":false}`),
			want: update, event: `Normal ScheduledRestartUpdated: updated ScheduledRestart web: enabled, schedule "0 4 * * *"`,
			spec: map[string]any{"suspend": false, "schedule": "0 4 * * *"}, record: `{"schedule":"0 4 * * *","suspend":false}`,
		},
		{
			name: "a schedule is removed", workload: web(in("true")), existing: Made(`{"schedule":"0 3 * * *","suspend":false}`),
			want: update, event: `Normal ScheduledRestartUpdated: updated ScheduledRestart web: suspended, schedule no longer set by an annotation`,
			spec: map[string]any{"suspend": true}, record: `{"suspend":true}`,
		},
		{
			name: "a time zone appears", workload: web(in("true", zoneKey, "Europe/Berlin")), existing: Made(`{"suspend":true}`),
			want: update, event: `Normal ScheduledRestartUpdated: updated ScheduledRestart web: suspended, time zone "Europe/Berlin"`,
			spec: map[string]any{"suspend": true, "timeZone": "Europe/Berlin"}, record: `{"timeZone":"Europe/Berlin","suspend":true}`,
		},
		{
			name: "a time zone is removed", workload: web(in("true", scheduleKey, "@daily")), existing: Made(`{"schedule":"@daily","timeZone":"UTC","suspend":false}`),
			want: update, event: `Normal ScheduledRestartUpdated: updated ScheduledRestart web: enabled, schedule "@daily", time zone no longer set by an annotation`,
			spec: map[string]any{"suspend": false, "schedule": "@daily"}, record: `{"schedule":"@daily","suspend":false}`,
		},
		{
			name: "a bad value changes nothing", workload: web(in("true", scheduleKey, "0 4 * * *", zoneKey, "Mars")),
			existing: Made(`{"schedule":"0 3 * * *","suspend":false}`), want: complain, event: badZone,
		},
		{
			name: "nor does another value of the opt-in", workload: web(in("yes")),
			existing: Made(`{"suspend":true}`), want: complain, event: badValue,
		},

		// Cases in which users have edited the ScheduledRestart manually.
		{name: "they edit other fields", workload: web(in("true")), existing: Made(`{"suspend":true}`).HandEdited()},
		{name: "they set a schedule and enable it", workload: web(in("true")), existing: Made(`{"suspend":true}`).Schedule("0 5 * * *").Suspend(false)},
		{name: "they suspend it", workload: web(in("true", scheduleKey, "@daily")), existing: Made(`{"schedule":"@daily","suspend":false}`).Suspend(true)},
		{
			name: "then the schedule is edited", workload: web(in("true", scheduleKey, "@weekly")), existing: Made(`{"schedule":"@daily","suspend":false}`).Suspend(true),
			want: update, event: `Normal ScheduledRestartUpdated: updated ScheduledRestart web: schedule "@weekly"`,
			spec: map[string]any{"schedule": "@weekly"}, record: `{"schedule":"@weekly"}`,
		},
		{
			name: "then the schedule is removed", workload: web(in("true")), existing: Made(`{"schedule":"@daily"}`).Suspend(true),
			want: update, event: `Normal ScheduledRestartUpdated: updated ScheduledRestart web: schedule no longer set by an annotation`,
			spec: map[string]any{}, record: `{}`,
		},
		{
			name: "then it appears again", workload: web(in("true", scheduleKey, "@daily")), existing: Made(`{}`).Suspend(true),
			want: update, event: `Normal ScheduledRestartUpdated: updated ScheduledRestart web: enabled, schedule "@daily"`,
			spec: map[string]any{"suspend": false, "schedule": "@daily"}, record: `{"schedule":"@daily","suspend":false}`,
		},
		{
			name: "they edit what an annotation names", workload: web(in("true", scheduleKey, "@daily")), existing: Made(`{"schedule":"@daily","suspend":false}`).Schedule("@weekly"),
			want: update, event: `Normal ScheduledRestartUpdated: updated ScheduledRestart web: enabled, schedule "@daily"`,
			spec: map[string]any{"suspend": false, "schedule": "@daily"}, record: `{"schedule":"@daily","suspend":false}`,
		},
		{
			name: "they edit the time zone that an annotation names", workload: web(in("true", zoneKey, "UTC")), existing: Made(`{"timeZone":"UTC","suspend":true}`).Zone("Europe/Berlin"),
			want: update, event: `Normal ScheduledRestartUpdated: updated ScheduledRestart web: suspended, time zone "UTC"`,
			spec: map[string]any{"suspend": true, "timeZone": "UTC"}, record: `{"timeZone":"UTC","suspend":true}`,
		},
		{
			name: "they point it elsewhere", workload: web(in("true")), existing: Made(`{"suspend":true}`).Suspend(false).Target("Deployment", "api"),
			want: update, event: `Normal ScheduledRestartUpdated: updated ScheduledRestart web: its target is the workload`,
			spec: map[string]any{}, record: `{}`,
		},
		{
			name: "they damage the record of one that is suspended", workload: web(in("true", scheduleKey, "@daily")), existing: Made("?").Schedule("@daily").Suspend(true),
			want: update, event: `Normal ScheduledRestartUpdated: updated ScheduledRestart web: suspended, schedule "@daily"`,
			spec: map[string]any{"suspend": true, "schedule": "@daily"}, record: `{"schedule":"@daily","suspend":true}`,
		},
		{
			name: "they damage the record of one that they have enabled", workload: web(in("true")), existing: Made("?").Schedule("0 5 * * *").Suspend(false),
			want: update, event: `Normal ScheduledRestartUpdated: updated ScheduledRestart web: enabled`,
			spec: map[string]any{"suspend": false}, record: `{"suspend":false}`,
		},
		{name: "which stays enabled then", workload: web(in("true")), existing: Made(`{"suspend":false}`).Schedule("0 5 * * *")},

		// Cases in which a ScheduledRestart created by the opt-in is deleted.
		{name: "the annotation is removed", workload: web(nil), existing: Made(`{"suspend":true}`), want: remove, event: deleted},
		{name: "a bad schedule does not keep it", workload: web(map[string]string{scheduleKey: "nonsense"}), existing: Made(`{"suspend":true}`), want: remove, event: deleted},
		{name: "it is being deleted already", workload: web(nil), existing: Made(`{"suspend":true}`).Deleted()},
		{name: "it is being deleted, and is wanted again", workload: web(in("true")), existing: Made(`{"suspend":true}`).Deleted()},

		// Cases in which a ScheduledRestart of another client is left unchanged.
		{name: "a person's", workload: web(nil), existing: MakeRestart()},
		{name: "a person's, in the way", workload: web(in("true")), existing: MakeRestart(), want: complain, event: exists},
		{name: "a person's in the way, being deleted", workload: web(in("true")), existing: MakeRestart().Deleted()},
		{
			name: "a person's, owned by the workload", workload: web(nil),
			existing: MakeRestart().Owner("apps/v1", "Deployment", "web", "web-1"),
		},
		{name: "one that a person has made their own", workload: web(in("true")), existing: Made(`{"suspend":true}`).NoRecord(), want: complain, event: exists},
		{
			name: "of another kind of the same name", workload: web(in("true")),
			existing: Made(`{"suspend":true}`).Owner("apps/v1", "StatefulSet", "web", "web-2").Target("StatefulSet", "web"),
			want:     create, named: "web-deployment", event: "Normal ScheduledRestartCreated: created ScheduledRestart web-deployment, as the name web is taken: suspended",
			spec: map[string]any{"suspend": true}, record: `{"suspend":true}`,
		},
		{
			name: "of a person's own for another workload", workload: web(in("true")), existing: MakeRestart().Target("Deployment", "api"),
			want: create, named: "web-deployment", event: "Normal ScheduledRestartCreated: created ScheduledRestart web-deployment, as the name web is taken: suspended",
			spec: map[string]any{"suspend": true}, record: `{"suspend":true}`,
		},
		{
			name: "of another kind of the same name, without the annotation", workload: web(nil),
			existing: Made(`{"suspend":true}`).Owner("apps/v1", "StatefulSet", "web", "web-2").Target("StatefulSet", "web"),
		},
		{
			name: "of another group's Deployment", workload: web(in("true")),
			existing: Made(`{"suspend":true}`).Owner("apps.example.com/v1", "Deployment", "web", "web-2"), want: complain, event: exists,
		},
		{
			name: "without an owner, for something else", workload: web(in("true")),
			existing: Made(`{"suspend":true}`).NoOwner().Target("StatefulSet", "web"),
			want:     create, named: "web-deployment", event: "Normal ScheduledRestartCreated: created ScheduledRestart web-deployment, as the name web is taken: suspended",
			spec: map[string]any{"suspend": true}, record: `{"suspend":true}`,
		},

		// Cases in which the workload was deleted, and another workload with the same name was
		// created.
		{
			name: "what the previous workload owned is garbage-collected", workload: web(in("true")),
			existing: Made(`{"schedule":"@daily"}`).Owner("apps/v1", "Deployment", "web", "web-0"),
		},
		{
			name: "also without the annotation", workload: web(nil),
			existing: Made(`{"suspend":true}`).Owner("apps/v1", "Deployment", "web", "web-0"),
		},
		{
			name: "an orphan is adopted", workload: web(in("true", scheduleKey, "@daily")),
			existing: Made(`{"schedule":"@daily"}`).Suspend(true).NoOwner(),
			want:     update, event: `Normal ScheduledRestartUpdated: updated ScheduledRestart web: schedule "@daily"`,
			spec: map[string]any{"schedule": "@daily"}, record: `{"schedule":"@daily"}`, look: true,
		},
		{name: "but not deleted", workload: web(nil), existing: Made(`{"suspend":true}`).NoOwner()},
	} {
		t.Run(tt.name, func(t *testing.T) {
			existing := tt.existing.Obj()
			got := decide(workload.Deployment, tt.workload, existing)
			if got.action != tt.want || got.look != (tt.look || tt.want == create) {
				t.Fatalf("got %q (look: %t), want %q (look: %t): %s", got.action, got.look, tt.want, tt.look, got.note)
			}
			event := ""
			if got.reason != "" {
				event = map[bool]string{true: "Warning ", false: "Normal "}[got.action == complain] + got.reason + ": " + got.note
			}
			if diff := gocmp.Diff(tt.event, event); diff != "" {
				t.Errorf("event (-want +got):\n%s", diff)
			}
			if diff := gocmp.Diff(tt.applied(), toJSON(t, got.apply)); diff != "" {
				t.Errorf("applied (-want +got):\n%s", diff)
			}
		})
	}
}

// applied returns the complete apply configuration that the row expects. It must be complete
// because an apply gives up the ownership of all fields that it omits.
func (row *decideRow) applied() map[string]any {
	if row.want != create && row.want != update {
		return nil
	}
	spec := maps.Clone(row.spec)
	spec["targetRef"] = map[string]any{"kind": "Deployment", "name": "web"}
	metadata := map[string]any{
		"name": cmp.Or(row.named, "web"), "namespace": "shop", "annotations": map[string]any{"tidekeeper.dev/opt-in-applied": row.record},
		"ownerReferences": []any{map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": "web-1", "controller": true}},
		// With this version, the apply succeeds only if the object does not exist.
		"resourceVersion": "1",
	}
	if row.want == update {
		// The apply must succeed only for this version of this object.
		metadata["resourceVersion"], metadata["uid"] = "7", "sr-1"
	}
	return map[string]any{"apiVersion": "tidekeeper.dev/v1", "kind": "ScheduledRestart", "metadata": metadata, "spec": spec}
}

func toJSON(t *testing.T, configuration *applyv1.ScheduledRestartApplyConfiguration) map[string]any {
	t.Helper()
	if configuration == nil {
		return nil
	}
	text, err := json.Marshal(configuration)
	if err != nil {
		t.Fatal(err)
	}
	object := map[string]any{}
	if err := json.Unmarshal(text, &object); err != nil {
		t.Fatal(err)
	}
	return object
}
