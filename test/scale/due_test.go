// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package scale

import (
	"errors"
	"fmt"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/test/framework"
)

// schedulesDue measures ScheduledRestarts that are all due at the same time.
func (r *run) schedulesDue(t *testing.T, files map[string][]byte) {
	t.Helper()
	r.manager.Stop(t)
	// Rollouts would take so much CPU time from the API server and its clients that they would
	// distort the measurement of the patches.
	if !r.scarce {
		r.Component(t, "kill", controllerManager)
	}
	r.putDeployments(t, nil)
	r.start(t, fmt.Sprintf("--max-concurrent-restarts=%d", r.schedules), "--restart-namespace-share=100", "--pprof-bind-address="+r.pprof)
	at, claimed := r.makeDue(t), claimAhead(r.schedules)
	audit := r.Audit(t, "tidekeeper/")
	start, before := time.Now(), framework.CPUTime(t, r.manager.Pid())
	time.Sleep(time.Until(at.Add(-claimed - 500*time.Millisecond))) // sleep: the manager is observed while the schedules wait
	used := (framework.CPUTime(t, r.manager.Pid()) - before).Seconds() / time.Since(start).Seconds()
	asked := 0.0
	// On a busy machine the test may wake up only after the first claim.
	requests := audit.Requests(t)
	for _, request := range requests {
		if request.Verb != "watch" && request.Received.Before(at.Add(-claimed)) {
			t.Errorf("request of the manager while the schedules wait: %s", request)
			asked++
		}
	}
	r.report.add(figure{Key: "wait", What: fmt.Sprintf("%d schedules that wait: requests", r.schedules), Value: asked, Most: new(0.0)})
	r.report.add(figure{Key: "wait-cpu", What: "… CPU", Value: 100 * used, Unit: "% of a core", Most: new(0.5)})
	time.Sleep(time.Until(at.Add(-200 * time.Millisecond))) // sleep: until just before the tick
	profile := r.profileCPU(time.Second + time.Duration(r.schedules)*time.Millisecond)
	var late []time.Duration
	var last time.Time
	patched := map[string]int{}
	framework.EventuallyWithin(t, r.patience, "all workloads are restarted", func() error {
		time.Sleep(200 * time.Millisecond) // sleep: reading the log takes CPU time from the measured processes
		for _, request := range append(requests, audit.Requests(t)...) {
			if request.Resource != "deployments" || request.Verb != "patch" || request.Code >= 300 {
				continue
			}
			patched[request.Name]++
			late = append(late, request.Received.Sub(at))
			if request.Answered.After(last) {
				last = request.Answered
			}
		}
		requests = nil
		if len(patched) < r.schedules {
			return fmt.Errorf("%d of %d have been", len(patched), r.schedules)
		}
		return nil
	})
	files[r.report.Scale+"-due-cpu.pprof"] = <-profile
	for name, times := range patched {
		if times != 1 {
			t.Errorf("Deployment %s was patched %d times for one tick, want once", name, times)
		}
	}
	r.manager.Stop(t)
	both, _ := r.bareRestarts(t, true)
	patchOnly, bareLate := r.bareRestarts(t, false)
	r.report.add(figure{
		Key: "due", What: fmt.Sprintf("%d schedules due at once, until all are patched", r.schedules), Value: last.Sub(at).Seconds(), Unit: "s",
		Limit: patchOnly.Seconds(), LimitIs: "a bare client, 64 at a time, that patches and writes no status", Within: 1.3,
		Beside: both.Seconds(), BesideIs: "a bare client that also writes the status first",
	})
	for _, percent := range []int{50, 99, 100} {
		f := figure{
			Key: fmt.Sprintf("late-%d", percent), What: fmt.Sprintf("… lateness, %s", map[int]string{50: "median", 99: "99th percentile", 100: "worst"}[percent]),
			Value: percentile(late, percent).Seconds(), Unit: "s",
			Limit: percentile(bareLate, percent).Seconds(), LimitIs: "that client",
		}
		if percent == 99 {
			f.Within = 1.3
		}
		r.report.add(f)
	}
}

// makeDue creates the ScheduledRestarts and requests a restart of all of them for the same time,
// which it returns. The slower their creation was on this machine, the later the returned time is.
func (r *run) makeDue(t *testing.T) (at time.Time) {
	t.Helper()
	began := time.Now()
	forEach(t, 64, r.schedules, func(i int) error { return r.Create(t.Context(), restartOf(objectName(i))) })
	r.awaitScheduled(t)
	claimed := claimAhead(r.schedules)
	for lead := r.lead + 2*time.Since(began); ; lead *= 2 {
		at = time.Now().Add(lead + claimed).Truncate(time.Second).UTC()
		request := rawPatch(t, map[string]any{"metadata": map[string]any{"annotations": map[string]any{tidekeeperv1.RestartNowAnnotation: at.Format(time.RFC3339)}}})
		forEach(t, 64, r.schedules, func(i int) error { return r.Patch(t.Context(), restartOf(objectName(i)), request) })
		left := time.Until(at) - claimed
		if left > time.Second {
			return at
		}
		t.Logf("the first is claimed in %s, and has only just been set: once more", left)
	}
}

// putDeployments writes one complete Deployment with 0 replicas for each ScheduledRestart. If
// `configure` is not nil, it configures the pod template's container.
func (r *run) putDeployments(t *testing.T, configure func(i int, container *corev1.Container)) {
	t.Helper()
	deployments := make([]*appsv1.Deployment, r.schedules)
	for i := range deployments {
		deployments[i] = deploymentOf(objectName(i))
		if configure != nil {
			configure(i, &deployments[i].Spec.Template.Spec.Containers[0])
		}
	}
	r.etcd.WriteDeployments(t, deployments, r.report.start)
}

// awaitScheduled waits until the status of each ScheduledRestart has a next tick.
func (r *run) awaitScheduled(t *testing.T) {
	t.Helper()
	framework.EventuallyWithin(t, r.patience, "all schedules wait for their tick", func() error {
		list := &tidekeeperv1.ScheduledRestartList{}
		if err := r.List(t.Context(), list); err != nil {
			return err
		}
		waiting := 0
		for i := range list.Items {
			if list.Items[i].Status.NextScheduleTime != nil {
				waiting++
			}
		}
		if waiting < r.schedules {
			time.Sleep(time.Second) // sleep: a list of many objects takes CPU time from the measured processes
			return fmt.Errorf("%d of %d do", waiting, r.schedules)
		}
		return nil
	})
}

// bareRestarts sends only the requests that the restarts need at least: the patch of the template
// and, with `claims`, the preceding status write. It returns the total duration, and each patch's
// delay after the first patch.
func (r *run) bareRestarts(t *testing.T, claims bool) (all time.Duration, late []time.Duration) {
	t.Helper()
	bare, err := client.New(r.ManagerConfig(t, "bare/1"), client.Options{Scheme: r.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now().UTC().Format(time.RFC3339)
	if !claims {
		now = time.Now().Add(time.Second).UTC().Format(time.RFC3339)
	}
	claim := rawPatch(t, map[string]any{"status": map[string]any{"lastScheduleTime": now, "active": map[string]any{
		"scheduledTime": now, "startedTime": now, "trigger": tidekeeperv1.TriggerRequest, "targetUID": "bare",
	}}})
	restart := rawPatch(t, map[string]any{
		"metadata": map[string]any{"annotations": map[string]any{tidekeeperv1.LastTickAnnotation: now}},
		"spec":     map[string]any{"template": map[string]any{"metadata": map[string]any{"annotations": map[string]any{tidekeeperv1.RestartedAtAnnotation: now}}}},
	})
	late = make([]time.Duration, r.schedules)
	begin := time.Now()
	forEach(t, 64, r.schedules, func(i int) error {
		var err error
		if claims {
			err = bare.Status().Patch(t.Context(), restartOf(objectName(i)), claim)
		}
		late[i] = time.Since(begin)
		return errors.Join(err, bare.Patch(t.Context(), deploymentOf(objectName(i)), restart))
	})
	return time.Since(begin), late
}
