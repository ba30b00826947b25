// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/test/framework"
)

// foretold is a namespace with three Deployments that take 15 s to restart and a paused Deployment.
// All have the same scheduled time (tick). With a single slot, two restarts fit between the tick
// and its deadline.
type foretold struct {
	namespace string
	tick      time.Time
	restarts  map[string]*tidekeeperv1.ScheduledRestart
}

// oneSlot lists the flags of a manager with a single slot for restarts.
var oneSlot = []string{"--max-concurrent-restarts=1", "--restart-namespace-share=100"}

// foretell creates the Deployments. `template` is a patch of their pod template that controls the
// pods' start-up.
func foretell(t *testing.T, namespace, template string) *foretold {
	t.Helper()
	f := &foretold{namespace: namespace, restarts: map[string]*tidekeeperv1.ScheduledRestart{}}
	cluster.AddNodes(t, namespace, 2)
	aNamespace(t, namespace)
	for _, name := range []string{"a", "b", "c", "paused"} {
		aDeployment(t, namespace, name)
		// The maximum surge of 100% creates all new pods at the same time.
		patch := `{"spec":{"strategy":{"rollingUpdate":{"maxSurge":"100%"}},"template":` + template + `}}`
		if out, err := cluster.Kubectl("", "-n", namespace, "patch", "deployment", name, "-p", patch); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		f.restarts[name] = nil
	}
	for name := range f.restarts {
		f.complete(t, name)
	}
	paused := f.deployment(t, "paused")
	cluster.Change(t, paused, func() { paused.Spec.Paused = true })
	return f
}

// schedule creates a ScheduledRestart with the given tick for each Deployment.
func (f *foretold) schedule(t *testing.T, tick time.Time, deadlineSeconds int32) {
	t.Helper()
	f.tick = tick.UTC()
	for name := range f.restarts {
		f.restarts[name] = aRestart(t, f.namespace, name, fmt.Sprintf("%d %d * * *", f.tick.Minute(), f.tick.Hour()), func(r *tidekeeperv1.ScheduledRestart) {
			r.Spec.StartingDeadlineSeconds = deadlineSeconds
		})
		eventuallyStatus(t, f.namespace, name, "Scheduled")
	}
}

func (f *foretold) deployment(t *testing.T, name string) *appsv1.Deployment {
	t.Helper()
	d := &appsv1.Deployment{}
	if err := cluster.Get(t.Context(), client.ObjectKey{Namespace: f.namespace, Name: name}, d); err != nil {
		t.Fatal(err)
	}
	return d
}

// complete lets a Deployment's pods become ready, and waits until the Deployment is rolled out.
func (f *foretold) complete(t *testing.T, name string) {
	t.Helper()
	framework.Eventually(t, name+" is rolled out", func() error {
		cluster.OpenGate(t, f.namespace, name)
		d := f.deployment(t, name)
		if s := d.Status; s.ObservedGeneration != d.Generation || s.UpdatedReplicas != 2 || s.Replicas != 2 || s.AvailableReplicas != 2 {
			return fmt.Errorf("generation %d, status %+v", d.Generation, s)
		}
		return nil
	})
}

// forecast returns the output of kubectl tide restarts forecast for the tick.
func (f *foretold) forecast(t *testing.T, seconds int) forecastJSON {
	t.Helper()
	r := command{args: strings.Fields(fmt.Sprintf("restarts forecast -n %s --for 1h -o json --assume-duration %ds --max-concurrent-restarts 1 --restart-namespace-share 100", f.namespace, seconds))}.run(t)
	got := forecastOf(t, r)
	if r.code != 2 || got.Summary.Started != 2 || got.Summary.Missed != 2 || got.Partial {
		t.Fatalf("exit code %d: %+v\n%s", r.code, got, r.stderr)
	}
	if diff := cmp.Diff(map[string]int{"maxConcurrentRestarts": 1, "restartNamespaceShare": 100, "restartSlotAgeSeconds": 600, "assumeDurationSeconds": seconds}, got.Settings); diff != "" || !slices.Equal(got.Defaults, []string{"restart-slot-age"}) {
		t.Errorf("the settings, defaults %q (-want +got):\n%s", got.Defaults, diff)
	}
	return got
}

// cameTrue waits until the tick's outcomes are known, compares them with the forecast, and returns
// the start times of the restarts, in order.
func (f *foretold) cameTrue(t *testing.T, patience time.Duration, forecast forecastJSON) (starts []time.Time) {
	t.Helper()
	var got map[string]int
	framework.EventuallyWithin(t, patience, "all ticks are decided", func() error {
		starts, got = nil, map[string]int{}
		for name, restart := range f.restarts {
			cluster.Refresh(t, restart)
			if len(restart.Status.History) != 1 {
				return fmt.Errorf("%s has %d records; status %+v", name, len(restart.Status.History), restart.Status)
			}
			record := restart.Status.History[0]
			got[fmt.Sprintf("%s %s", record.Outcome, record.Reason)]++
			if record.StartedTime != nil {
				starts = append(starts, record.StartedTime.UTC())
			}
		}
		return nil
	})
	if diff := cmp.Diff(map[string]int{"Succeeded ": 2, "Missed BudgetExhausted": 1, "Missed TargetPaused": 1}, got); diff != "" {
		t.Fatalf("what happened (-want +got):\n%s", diff)
	}
	want := map[string]int{}
	for _, tick := range slices.Concat(forecast.Started, forecast.NotStarted) {
		want[fmt.Sprintf("%s %s", tick.Outcome, tick.Reason)]++
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-forecast +what happened):\n%s", diff)
	}
	paused := forecast.NotStarted[slices.IndexFunc(forecast.NotStarted, func(t forecastTick) bool { return t.Name == "paused" })]
	if got := f.restarts["paused"].Status.History[0].Message; got != paused.Message {
		t.Errorf("the record says %q, the forecast %q", got, paused.Message)
	}
	slices.SortFunc(starts, time.Time.Compare)
	return starts
}

// TestRestartsForecastComesTrue checks that the outcomes and times of a forecast come true. With a
// single slot, two of three restarts fit between the tick and its deadline, so the third is missed,
// and so is the restart of a paused Deployment. Only the test advances the manager's clock.
func TestRestartsForecastComesTrue(t *testing.T) {
	tick := time.Now().Add(30 * time.Minute).Truncate(time.Minute).UTC()
	clock := framework.NewStandingClock(t, tick.Add(-20*time.Minute))
	cluster.WithClocks(t).StartManager(t, append(oneSlot, clock.Flag())...)
	f := foretell(t, "ahead", fmt.Sprintf(`{"spec":{"readinessGates":[{"conditionType":%q}]}}`, framework.Gate))
	f.schedule(t, tick, 24)
	forecast := f.forecast(t, 15)

	// waits checks the reasons of the restarts that wait while another restart holds the only slot,
	// and returns the name of that restart.
	waits := func(started int, want map[string]int) (active string) {
		t.Helper()
		framework.Eventually(t, fmt.Sprintf("%d are started, the others wait", started), func() error {
			got := map[string]int{}
			active = ""
			for name, r := range f.restarts {
				cluster.Refresh(t, r)
				reason := "none"
				if ready := meta.FindStatusCondition(r.Status.Conditions, tidekeeperv1.ConditionReady); ready != nil {
					reason = ready.Reason
				}
				if len(r.Status.History) > 0 {
					reason = string(r.Status.History[0].Outcome)
				}
				if got[reason]++; r.Status.Active != nil && f.deployment(t, name).Spec.Template.Annotations[tidekeeperv1.RestartedAtAnnotation] != "" {
					active = name
				}
			}
			if diff := cmp.Diff(want, got); diff != "" || active == "" {
				return fmt.Errorf("of %q the tick is sent (-want +got):\n%s", active, diff)
			}
			return nil
		})
		return active
	}
	clock.Set(t, tick)
	first := waits(1, map[string]int{"Restarting": 1, "BudgetExhausted": 2, "TargetPaused": 1})
	clock.Set(t, tick.Add(15*time.Second))
	f.complete(t, first)
	second := waits(2, map[string]int{"Succeeded": 1, "Restarting": 1, "BudgetExhausted": 1, "TargetPaused": 1})
	// Set the clock to a time after the deadline.
	clock.Set(t, tick.Add(30*time.Second))
	f.complete(t, second)
	for i, start := range f.cameTrue(t, framework.Patience, forecast) {
		// Times are in whole seconds, so they may differ by one.
		if off := start.Sub(forecast.Started[i].Start).Abs(); off > time.Second {
			t.Errorf("restart %d started at %s, and was forecast for %s", i, start, forecast.Started[i].Start)
		}
	}
}

// TestRestartsForecastComesTrueInTime is [TestRestartsForecastComesTrue] with the machine's clock
// and longer durations.
func TestRestartsForecastComesTrueInTime(t *testing.T) {
	framework.OnlyInTestAll(t, "it waits for the minutes of a forecast; TestRestartsForecastComesTrue sets the clock")
	cluster.StartManager(t, oneSlot...)
	f := foretell(t, "ontime", `{"metadata":{"annotations":{"sandbox.tidekeeper.dev/containers-ready-after":"29s"}}}`)
	f.schedule(t, time.Now().Add(30*time.Second).Truncate(time.Minute).Add(time.Minute), 50)
	forecast := f.forecast(t, 30)
	for i, start := range f.cameTrue(t, 2*time.Minute+framework.Patience, forecast) {
		if early := forecast.Started[i].Start.Sub(start); early > 2*time.Second {
			t.Errorf("restart %d started at %s, %s before it was forecast", i, start, early)
		}
	}
}
