// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/test/framework"
)

// storm is a Secret that a program writes again and again, and a workload that uses the Secret. The
// manager's clock stands still between the writes, so that only the test advances it.
type storm struct {
	secret     *corev1.Secret
	deployment *appsv1.Deployment
	restart    *tidekeeperv1.ScheduledRestart
	clock      framework.Clock
	begin      time.Time
	// advanced is the time at which the clock was last advanced by a second.
	advanced time.Time
	// written counts the test's writes to the Secret.
	written int
}

func newStorm(t *testing.T, name string) (*storm, *framework.Manager) {
	t.Helper()
	s := &storm{begin: time.Now().Add(24 * time.Hour).Truncate(time.Minute)}
	s.clock = framework.NewStandingClock(t, s.begin)
	manager := s.start(t)
	cluster.AddNodes(t, name, 1)
	s.secret = &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: metav1.NamespaceDefault}, StringData: map[string]string{"tls.crt": "0"}}
	cluster.Apply(t, s.secret)
	s.deployment = workload(t, "Deployment", name).(*appsv1.Deployment)
	s.restart = configured(t, s.deployment, "Deployment", name, func(spec *corev1.PodSpec) {
		spec.Containers[0].EnvFrom = []corev1.EnvFromSource{
			{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: name}}},
			// A missing object has no timestamp, so the manager dates the change by its own clock.
			{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "no-such"}, Optional: new(true)}},
		}
	})
	return s, manager
}

func (s *storm) start(t *testing.T) *framework.Manager {
	t.Helper()
	return cluster.WithClocks(t).StartManager(t, append(withConfig, s.clock.Flag())...)
}

// write changes the Secret's content as the field manager "issuer".
func (s *storm) write(t *testing.T) {
	t.Helper()
	s.written++
	patch := client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, `{"stringData":{"tls.crt":"%d"}}`, s.written))
	if err := cluster.Patch(t.Context(), s.secret, patch, client.FieldOwner("issuer")); err != nil {
		t.Fatal(err)
	}
}

// eventuallyServed waits until a restart that is due by the manager's clock has finished, or until
// the change waits for the minimum interval. It advances the clock so that the content settles, but
// not during a restart, nor faster than time passes: on a busy machine, the interval would otherwise
// pass before the manager has seen the change or completed a restart.
func (s *storm) eventuallyServed(t *testing.T, hash string) {
	t.Helper()
	eventuallyRestart(t, s.restart, framework.Patience, "serves the change, or has it wait", func() error {
		status, now := &s.restart.Status, s.clock.Now(t)
		if next := status.NextChangeTime; status.Active == nil && (status.ConfigHash != hash || next != nil && next.After(now)) {
			return nil
		}
		if status.Active == nil && time.Since(s.advanced) >= time.Second {
			s.clock.Set(t, now.Add(time.Second))
			s.advanced = time.Now()
		}
		return fmt.Errorf("at %s: %+v", now, status)
	})
}

func (s *storm) condition() *metav1.Condition {
	return meta.FindStatusCondition(s.restart.Status.Conditions, tidekeeperv1.ConditionRestartStorm)
}

func (s *storm) events(t *testing.T) int {
	t.Helper()
	return len(slices.DeleteFunc(cluster.Events(t, "ScheduledRestart", s.restart.Name), func(e string) bool {
		return !strings.HasPrefix(e, "Warning RestartStorm: ")
	}))
}

// TestRestartStorm checks that a Secret that changes each minute restarts its workload at most once
// every ten minutes, regardless of which manager leads. From the third such restart in a row on, a
// condition, an event and a metric must name the Secret and the client that writes it, until the
// Secret no longer changes.
func TestRestartStorm(t *testing.T) {
	s, manager := newStorm(t, "storm")
	if got := s.restart.Spec.MinIntervalSeconds; got != 600 {
		t.Fatalf("the default of minIntervalSeconds is %d", got)
	}
	const want = "changes keep coming: 3 times in a row or more, the content has changed again less than 10m0s after a restart for a change; Secret storm changed last, and is written by issuer"
	for minute := range 60 {
		if minute == 15 {
			manager.Stop(t)
			manager = s.start(t)
		}
		cluster.Refresh(t, s.restart)
		hash := s.restart.Status.ConfigHash
		if at := s.begin.Add(time.Duration(minute) * time.Minute); at.After(s.clock.Now(t)) {
			s.clock.Set(t, at)
		}
		s.write(t)
		s.eventuallyServed(t, hash)
		if s.condition() != nil && s.clock.Now(t).Before(s.begin.Add(20*time.Minute)) {
			t.Fatalf("after %d changes it is called a storm: %+v", minute, s.restart.Status)
		}
	}
	var starts []time.Time
	for _, record := range slices.Backward(s.restart.Status.History) {
		if record.Trigger == tidekeeperv1.TriggerChange && record.StartedTime != nil && record.StartedTime.Before(&metav1.Time{Time: s.begin.Add(time.Hour)}) {
			starts = append(starts, record.StartedTime.Time)
		}
	}
	for i := range starts[1:] {
		if apart := starts[i+1].Sub(starts[i]); apart < 10*time.Minute {
			t.Errorf("two restarts are %s apart", apart)
		}
	}
	if len(starts) < 4 || len(starts) > 6 || len(cluster.RestartedAt(t, s.deployment)) > 7 {
		t.Errorf("in an hour it was restarted at %s", starts)
	}
	if s.condition() == nil {
		t.Fatalf("it is not called a storm: %+v", s.restart.Status)
	}
	if c := s.condition(); c.Status != metav1.ConditionTrue || c.Reason != tidekeeperv1.ReasonChangesKeepComing || c.Message != want {
		t.Errorf("the condition says %+v", c)
	}
	cluster.EventuallyEvent(t, "ScheduledRestart", "storm", "Warning RestartStorm: "+want)
	if n := s.events(t); n != 1 {
		t.Errorf("there are %d events", n)
	}
	labels := map[string]string{"namespace": "default", "name": "storm", "object": "Secret storm", "writer": "issuer"}
	framework.Eventually(t, "the metric names the Secret and its writer", func() error {
		return gauge(manager.ReadMetrics(t), 1, "tidekeeper_restart_storm", labels)
	})

	// A requested restart is not delayed by the minimum interval.
	r := s.restart
	before := len(cluster.RestartedAt(t, s.deployment))
	s.clock.Set(t, s.clock.Now(t).Add(30*time.Second))
	tick := cluster.RequestRestart(t, r, s.clock.Now(t))
	eventuallyOutcome(t, r, tick, tidekeeperv1.OutcomeSucceeded, "")
	if got := cluster.RestartedAt(t, s.deployment); len(got) != before+1 {
		t.Errorf("the request was sent %d times", len(got)-before)
	}

	s.clock.Set(t, s.clock.Now(t).Add(15*time.Minute))
	eventuallyRestart(t, r, framework.Patience, "is calm again", func() error {
		if s.condition() != nil || r.Status.ConsecutiveDelays != 0 {
			return fmt.Errorf("status %+v", r.Status)
		}
		return nil
	})
	framework.Eventually(t, "the metric is gone", func() error {
		if value, ok := manager.ReadMetrics(t).Value("tidekeeper_restart_storm", labels); ok {
			return fmt.Errorf("it is still there: %v", value)
		}
		return nil
	})
}

// TestRestartStormIsBounded checks that thousands of changes within the minimum interval result in
// a handful of status writes, and a single restart.
func TestRestartStormIsBounded(t *testing.T) {
	audit := cluster.Audit(t, "tidekeeper/")
	s, manager := newStorm(t, "flood")
	hash := s.restart.Status.ConfigHash
	s.write(t)
	s.eventuallyServed(t, hash)
	audit.Requests(t)
	for i := range 2000 {
		s.write(t)
		if i%500 == 0 {
			s.clock.Set(t, s.clock.Now(t).Add(30*time.Second))
		}
	}
	framework.Eventually(t, "the last change waits", func() error {
		if cluster.Refresh(t, s.restart); s.restart.Status.NextChangeTime == nil {
			return errors.New("it does not")
		}
		return nil
	})
	manager.AssertIdle(t)
	var writes []string
	for _, request := range audit.Requests(t) {
		if request.Writes() && strings.HasPrefix(request.Name, "flood") {
			writes = append(writes, request.String())
		}
	}
	// The counted writes may include the first restart's writes.
	if len(writes) > 10 {
		t.Errorf("2000 changes cost %d writes: %q", len(writes), writes)
	}
	if got := cluster.RestartedAt(t, s.deployment); len(got) != 1 {
		t.Errorf("it was restarted at %q", got)
	}
}

// TestMinIntervalBounds checks that the API server rejects a minimum interval below the lower
// limit, or of more than a day.
func TestMinIntervalBounds(t *testing.T) {
	r := restartOf("Deployment", "interval")
	for text, want := range map[string]string{
		"0":     "spec.minIntervalSeconds: Invalid value: 0: spec.minIntervalSeconds in body should be greater than or equal to 1",
		"86401": "spec.minIntervalSeconds: Invalid value: 86401: spec.minIntervalSeconds in body should be less than or equal to 86400",
	} {
		_, err := cluster.Kubectl(fmt.Sprintf(`{"apiVersion":"tidekeeper.dev/v1","kind":"ScheduledRestart","metadata":{"name":%q},"spec":{"targetRef":{"kind":"Deployment","name":"x"},"minIntervalSeconds":%s}}`, r.Name, text), "create", "-f", "-")
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
}
