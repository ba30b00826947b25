// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package underway edits a ScheduledRestart during one of its restarts, and reverts the edit.
// Restarts must work as usual afterwards, and no tick (scheduled time) may be sent twice. Package
// fuzz tries all edits while no restart is running.
package underway

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/test/framework"
)

var cluster framework.Cluster

func TestMain(m *testing.M) { os.Exit(framework.Main(m, &cluster, "--nodes=0")) }

// spec returns the spec of a ScheduledRestart whose schedule does not tick during the test.
func spec(name string) tidekeeperv1.ScheduledRestartSpec {
	return tidekeeperv1.ScheduledRestartSpec{
		TargetRef: tidekeeperv1.TargetRef{APIVersion: "apps/v1", Kind: "Deployment", Name: name},
		Schedule:  "0 3 29 2 *", TimeZone: "Europe/Berlin", StartingDeadlineSeconds: 600, SpreadSeconds: 60,
		Precondition: tidekeeperv1.PreconditionHealthy, MaxPodAgeSeconds: 86400, ProgressDeadlineSeconds: 600, FailureLimit: 3, HistoryLimit: 10,
	}
}

// edit is a spec edit that the API server accepts.
type edit struct {
	name string
	make func(*tidekeeperv1.ScheduledRestartSpec)
}

var edits = []edit{
	{"another target", func(s *tidekeeperv1.ScheduledRestartSpec) { s.TargetRef.Name = "other" }},
	{"another kind of target", func(s *tidekeeperv1.ScheduledRestartSpec) { s.TargetRef.Kind = "StatefulSet" }},
	{"a schedule that ticks each minute", func(s *tidekeeperv1.ScheduledRestartSpec) { s.Schedule = "* * * * *" }},
	{"no schedule", func(s *tidekeeperv1.ScheduledRestartSpec) { s.Schedule = "" }},
	{"another time zone", func(s *tidekeeperv1.ScheduledRestartSpec) { s.TimeZone = "America/St_Johns" }},
	{"suspended", func(s *tidekeeperv1.ScheduledRestartSpec) { s.Suspend = true }},
	{"the shortest deadlines", func(s *tidekeeperv1.ScheduledRestartSpec) {
		s.StartingDeadlineSeconds, s.ProgressDeadlineSeconds = 1, 1
	}},
	{"no precondition", func(s *tidekeeperv1.ScheduledRestartSpec) { s.Precondition = tidekeeperv1.PreconditionNone }},
	{"the shortest history", func(s *tidekeeperv1.ScheduledRestartSpec) { s.HistoryLimit, s.FailureLimit = 1, 1 }},
	{"by evictions", func(s *tidekeeperv1.ScheduledRestartSpec) {
		half := intstr.FromString("50%")
		s.Method, s.MaxUnavailable = tidekeeperv1.MethodEvict, &half
	}},
	{"in a window that is closed", func(s *tidekeeperv1.ScheduledRestartSpec) {
		s.Windows = []tidekeeperv1.RestartWindow{{Schedule: "0 0 29 2 *", DurationSeconds: 60}}
	}},
	{"after one that does not exist", func(s *tidekeeperv1.ScheduledRestartSpec) { s.After = []string{"none"} }},
	{"when configuration changes", func(s *tidekeeperv1.ScheduledRestartSpec) { s.OnConfigChange = "ConfigMapsAndSecrets" }},
	{"the youngest pods", func(s *tidekeeperv1.ScheduledRestartSpec) { s.MaxPodAgeSeconds = 300 }},
}

func TestEditsDuringARestart(t *testing.T) {
	cluster.AddNodes(t, "worker", 8)
	manager := cluster.StartManager(t, "--optional-watches=configmaps,secrets")
	t.Run("edits", func(t *testing.T) {
		for i, e := range edits {
			t.Run(e.name, func(t *testing.T) {
				t.Parallel()
				e.play(t, fmt.Sprintf("edit-%d", i))
			})
		}
	})
	manager.AssertSound(t)
}

// play edits a ScheduledRestart during a restart, and reverts the edit.
func (e edit) play(t *testing.T, name string) {
	d := framework.Deployment(name, 1, framework.App)
	cluster.Apply(t, d)
	eventually(t, d, "is up", func() error { return up(d) })
	r := framework.ScheduledRestart(name)
	r.Spec = spec(name)
	cluster.Apply(t, r)
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

	first := cluster.RequestRestart(t, r, time.Now())
	cluster.Change(t, r, func() { e.make(&r.Spec) })
	cluster.Change(t, r, func() { r.Spec = spec(name) })
	rests()

	// Ticks are in whole seconds, so the next second is later than all previous ticks.
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
	for _, problem := range onceEach(t, d, r, []time.Time{first, tick}) {
		t.Error(problem)
	}
}

// eventually refreshes an object until the given check returns nil.
func eventually(t testing.TB, o client.Object, what string, check func() error) {
	t.Helper()
	framework.Eventually(t, o.GetName()+" "+what, func() error {
		if err := cluster.Get(context.WithoutCancel(t.Context()), client.ObjectKeyFromObject(o), o); err != nil {
			return err
		}
		return check()
	})
}

func up(d *appsv1.Deployment) error {
	if d.Status.ObservedGeneration != d.Generation || d.Status.ReadyReplicas != *d.Spec.Replicas {
		return errors.New("not yet")
	}
	return nil
}

// onceEach returns a line for each tick that was sent twice, each restart without a tick, and each
// template change without a tick. Each new template creates a ReplicaSet; reverting to an old
// template does not.
func onceEach(t testing.TB, d *appsv1.Deployment, r *tidekeeperv1.ScheduledRestart, requests []time.Time) []string {
	t.Helper()
	cluster.Refresh(t, d)
	cluster.Refresh(t, r)
	restartedAt := cluster.RestartedAt(t, d)
	// Some edits enable a schedule, which then ticks every full minute.
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

// send is the statement in the manager's source that sends a tick to the workload.
const send = `if err := s.client.Patch(ctx, t.object, client.RawPatch(types.MergePatchType, patch)); err != nil {`

// sendsTwice is a source edit that makes the manager restart a workload twice for one tick.
var sendsTwice = framework.Mistake{
	File: "internal/restart/send.go", Old: send,
	New: send + `
		return err
	}
	time.Sleep(2 * time.Second) // so that it creates its own ReplicaSet
	again := fmt.Appendf(nil, "{\"spec\":{\"template\":{\"metadata\":{\"annotations\":{%q:%q}}}}}",
		tidekeeperv1.RestartedAtAnnotation, workload.FormatTime(tick.Add(time.Second)))
	if err := s.client.Patch(ctx, t.object, client.RawPatch(types.MergePatchType, again)); err != nil {`,
}

// TestMistakeIsPossible checks that the source edit sendsTwice still applies.
func TestMistakeIsPossible(t *testing.T) { framework.Mistaken(t, sendsTwice) }

// TestOnceEachNotices checks that onceEach detects a manager that restarts a workload twice for one
// tick, and reports the right problem.
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
	r.Spec = spec("notices")
	cluster.Apply(t, r)
	// Avoid the last second of a minute, because the next second would also be a tick of the
	// schedule.
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
