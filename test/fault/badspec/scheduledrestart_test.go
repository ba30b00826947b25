// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package badspec

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/test/fault/badspec/mutate"
	"tidekeeper.dev/tidekeeper/test/framework"
)

var restarts = []map[string]any{
	{
		"targetRef": map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "name": mutate.Placeholder},
		// Does not tick while the test is running.
		"schedule": "0 3 29 2 *", "timeZone": "Europe/Berlin", "suspend": false,
		"startingDeadlineSeconds": 600, "spreadSeconds": 60, "precondition": "Healthy", "maxPodAgeSeconds": 86400,
		"onConfigChange": "ConfigMaps",
		// Together always open.
		"windows":                 []any{map[string]any{"schedule": "0 */2 * * *", "durationSeconds": 7200}, map[string]any{"schedule": "0 1-23/2 * * *", "durationSeconds": 7200}},
		"progressDeadlineSeconds": 600, "failureLimit": 3, "historyLimit": 10, "after": []any{"at-rest"},
	},
	{
		"targetRef": map[string]any{"apiVersion": "apps/v1", "kind": "StatefulSet", "name": mutate.Placeholder + "-other"},
		"schedule":  "* * * * *", "timeZone": "America/St_Johns", "suspend": true,
		"startingDeadlineSeconds": 1, "spreadSeconds": 0, "precondition": "None", "maxPodAgeSeconds": 3600,
		"onConfigChange":          "ConfigMapsAndSecrets",
		"windows":                 []any{map[string]any{"schedule": "@weekly", "durationSeconds": 60}},
		"progressDeadlineSeconds": 1, "failureLimit": 1, "historyLimit": 1, "method": "Evict", "maxUnavailable": "50%", "after": []any{"standing", mutate.Placeholder + "-first"},
	},
}

func TestScheduledRestart(t *testing.T) {
	cluster.AddNodes(t, "worker", 8)
	first := maps.Clone(restarts[0])
	delete(first, "after")
	create(t, framework.ScheduledRestart("at-rest"), first)
	standing := framework.ScheduledRestart("standing")
	create(t, standing, restarts[0])
	kind{crd: "tidekeeper.dev_scheduledrestarts.yaml", args: []string{"--controllers=*,configmap-change,secret-change"}, examples: restarts, standing: standing, play: playRestart}.run(t)
}

// playRestart edits a ScheduledRestart with its own Deployment, during a restart or
// not, and heals it. Afterwards restarts work as usual, and no tick has been sent
// twice.
func playRestart(t testing.TB, e edit) {
	d := framework.Deployment(e.name, 1, framework.App)
	cluster.Apply(t, d)
	eventually(t, d, "is up", func() error { return up(d) })
	r := framework.ScheduledRestart(e.name)
	create(t, r, restarts[0])
	rests := func() {
		t.Helper()
		eventually(t, r, "is at rest", func() error {
			if r.Status.Active != nil {
				return fmt.Errorf("it restarts for %s", r.Status.Active.ScheduledTime)
			}
			return framework.ReadyIs(r.Status.Conditions, r.Generation, "Scheduled")
		})
	}
	rests()

	var ticks []time.Time
	if e.underWay {
		ticks = append(ticks, cluster.RequestRestart(t, r, time.Now()))
	}
	change(t, r, e.Patch(e.name))
	if !e.underWay {
		eventually(t, r, "is looked at", func() error {
			if r.Status.ObservedGeneration != r.Generation {
				return errors.New("it is not")
			}
			return nil
		})
	}
	change(t, r, mutate.PatchTo(restarts[0], e.name))
	rests()

	// Ticks have a resolution of one second: this one is after all previous ones.
	tick := cluster.RequestRestart(t, r, time.Now().Add(time.Second))
	eventually(t, r, "restarts again", func() error {
		if len(r.Status.History) == 0 || !r.Status.History[0].ScheduledTime.Time.Equal(tick) {
			return fmt.Errorf("not yet: %+v", r.Status.History)
		}
		if last := r.Status.History[0]; last.Outcome != tidekeeperv1.OutcomeSucceeded {
			t.Fatalf("it has %s: %s: %s", last.Outcome, last.Reason, last.Message)
		}
		return nil
	})
	for _, problem := range onceEach(t, d, r, append(ticks, tick)) {
		t.Error(problem)
	}
}

func up(d *appsv1.Deployment) error {
	if d.Status.ObservedGeneration != d.Generation || d.Status.ReadyReplicas != *d.Spec.Replicas {
		return errors.New("not yet")
	}
	return nil
}

// onceEach reports a tick that was sent twice, anything else that was sent, and a
// template that was written without a tick. Each new template creates a ReplicaSet;
// going back to an old template does not.
func onceEach(t testing.TB, d *appsv1.Deployment, r *tidekeeperv1.ScheduledRestart, requests []time.Time) []string {
	t.Helper()
	cluster.Refresh(t, d)
	cluster.Refresh(t, r)
	restartedAt := cluster.RestartedAt(t, d)
	// Some bad edits enable a schedule, which then ticks at whole minutes.
	isTick := func(at time.Time) bool {
		return slices.ContainsFunc(requests, at.Equal) || at.Equal(at.Truncate(time.Minute))
	}
	problems := framework.OnceEach(isTick, r.Status.History, restartedAt)
	last := requests[len(requests)-1].Format(time.RFC3339)
	if !slices.Contains(restartedAt, last) {
		problems = append(problems, fmt.Sprintf("no template was restarted for %s, but for %q", last, restartedAt))
	}
	if written := d.Generation - 1; written != int64(len(restartedAt)) {
		problems = append(problems, fmt.Sprintf("the template was written %d times, for the ticks %q", written, restartedAt))
	}
	return problems
}

// send is how the manager sends a tick.
const send = `if err := r.client.Patch(ctx, t.object, client.RawPatch(types.MergePatchType, patch)); err != nil {`

// sendsTwice is the mistake of a manager that restarts a workload twice for a tick.
var sendsTwice = framework.Mistake{
	File: "internal/restart/act.go", Old: send,
	New: send + `
		return err
	}
	time.Sleep(2 * time.Second) // so that it creates its own ReplicaSet
	again := fmt.Appendf(nil, "{\"spec\":{\"template\":{\"metadata\":{\"annotations\":{%q:%q}}}}}",
		tidekeeperv1.RestartedAtAnnotation, workload.FormatTime(tick.Add(time.Second)))
	if err := r.client.Patch(ctx, t.object, client.RawPatch(types.MergePatchType, again)); err != nil {`,
}

// TestMistakeIsPossible checks that the code still is as the mistake needs it.
func TestMistakeIsPossible(t *testing.T) { framework.Mistaken(t, sendsTwice) }

// TestOnceEachNotices: a manager that restarts a workload twice for a tick is detected,
// and with the right message.
func TestOnceEachNotices(t *testing.T) {
	if !framework.AllFaults() {
		t.Skip("it builds a manager: only with FAULTS=all")
	}
	mistaken := cluster.WithManager(framework.BuildMistaken(t, sendsTwice))
	mistaken.AddNodes(t, "notices", 1)
	mistaken.StartManager(t)
	d := framework.Deployment("notices", 1, framework.App)
	cluster.Apply(t, d)
	eventually(t, d, "is up", func() error { return up(d) })
	r := framework.ScheduledRestart("notices")
	create(t, r, restarts[0])
	// Not in the last second of a minute, as the next second is a tick, too.
	tick := time.Now().Truncate(time.Second)
	if tick.Second() == 59 {
		tick = tick.Add(-time.Second)
	}
	tick = cluster.RequestRestart(t, r, tick)
	eventually(t, r, "has restarted", func() error {
		if len(r.Status.History) == 0 {
			return errors.New("not yet")
		}
		return nil
	})
	want := fmt.Sprintf("a template was restarted for %s, which is not a tick", tick.Add(time.Second).Format(time.RFC3339))
	if got := onceEach(t, d, r, []time.Time{tick}); !slices.Equal(got, []string{want}) {
		t.Errorf("detected %q, want only %q", got, want)
	}
}
