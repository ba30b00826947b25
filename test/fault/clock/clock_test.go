// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package clock sets the managers' wall clocks: back and forth by hours, a minute apart from each
// other, across a change to summer time, and forward by hours, as after a suspend of the machine.
// Each scheduled time (tick) must start a restart once, within its deadline, or not at all.
//
// The tests run the real manager with a replaced clock; see package manager.
package clock

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/test/framework"
)

var cluster framework.Cluster

func TestMain(m *testing.M) {
	framework.AllAtOnce()
	os.Exit(framework.Main(m, &cluster, "--nodes=1"))
}

// fixture is a Deployment with a ScheduledRestart, in a namespace whose managers have replaced
// clocks.
type fixture struct {
	*framework.Cluster
	namespace  string
	deployment *appsv1.Deployment
	restart    *tidekeeperv1.ScheduledRestart
	// clock is the clock of the manager that was started last; markers counts the calls of
	// [fixture.awaitMarker].
	clock   framework.Clock
	markers int
}

// newFixture creates a fixture whose pods take the duration `pods` to become ready. The functions
// `change` edit the Deployment before it is created. The ScheduledRestart is suspended because the API
// server's clock differs from the managers' clocks.
func newFixture(t *testing.T, schedule string, pods time.Duration, change ...func(*appsv1.Deployment)) *fixture {
	t.Helper()
	t.Parallel()
	s := &fixture{
		Cluster: cluster.WithClocks(t), namespace: strings.ToLower(t.Name()),
		deployment: framework.Deployment("clock", 1, framework.App), restart: framework.ScheduledRestart("clock"),
	}
	s.deployment.Namespace, s.restart.Namespace = s.namespace, s.namespace
	s.Apply(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.namespace}})
	// This RoleBinding lets the managers elect a leader in the namespace.
	s.Apply(t, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "election", Namespace: s.namespace},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "edit"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: framework.ManagerAccount, Namespace: framework.ManagerNamespace}},
	})
	s.deployment.Spec.Template.Annotations = map[string]string{"sandbox.tidekeeper.dev/containers-ready-after": pods.String()}
	for _, change := range change {
		change(s.deployment)
	}
	s.Apply(t, s.deployment)
	framework.Eventually(t, "the Deployment is up", func() error {
		s.OpenGate(t, s.namespace, s.deployment.Name)
		s.Refresh(t, s.deployment)
		if s.deployment.Status.ReadyReplicas != 1 {
			return errors.New("it is not")
		}
		return nil
	})
	s.restart.Spec = tidekeeperv1.ScheduledRestartSpec{
		TargetRef: tidekeeperv1.TargetRef{Kind: "Deployment", Name: "clock"}, Schedule: tidekeeperv1.CronExpression(schedule), Suspend: true, StartingDeadlineSeconds: 60,
		// The deadline is longer than any clock change.
		ProgressDeadlineSeconds: 24 * 60 * 60,
	}
	s.Apply(t, s.restart)
	return s
}

// start starts a manager with the given clock, limited to the fixture's namespace.
func (s *fixture) start(t *testing.T, c framework.Clock) *framework.Manager {
	t.Helper()
	s.clock = c
	return s.StartManager(t, c.Flag(), "--namespaces="+s.namespace)
}

// elect starts a manager with the given clock and leader election. If it does not release its
// lease, another manager takes over only after expire.
func (s *fixture) elect(t *testing.T, c framework.Clock, args ...string) *framework.Manager {
	t.Helper()
	s.clock = c
	return s.StartManager(t, slices.Concat(framework.ElectUntilReleasedIn(s.namespace), []string{c.Flag(), "--namespaces=" + s.namespace}, args)...)
}

// expire makes the lease of a killed or suspended leader expire.
func (s *fixture) expire(t *testing.T) {
	t.Helper()
	s.ExpireLeaseIn(t, s.namespace)
}

// enable resumes the ScheduledRestart. Its ticks begin at the current time of the manager's clock.
func (s *fixture) enable(t *testing.T) {
	t.Helper()
	s.eventuallyIs(t, "Suspended")
	s.Change(t, s.restart, func() { s.restart.Spec.Suspend = false })
	s.eventuallyIs(t, "Scheduled")
}

func (s *fixture) eventuallyIs(t *testing.T, reason string) {
	t.Helper()
	framework.Eventually(t, "the ScheduledRestart is "+reason, func() error {
		s.Refresh(t, s.restart)
		return framework.ReadyIs(s.restart.Status.Conditions, s.restart.Generation, reason)
	})
}

// eventuallySent waits until the given number of ticks were written to the pod template. It does
// not wait for the condition reason Restarting, which also applies to a tick that is claimed but
// not due yet.
func (s *fixture) eventuallySent(t *testing.T, ticks int64) {
	t.Helper()
	framework.Eventually(t, "the tick is sent", func() error {
		if s.Refresh(t, s.deployment); s.deployment.Generation != 1+ticks {
			return fmt.Errorf("the pod template was written %d times", s.deployment.Generation-1)
		}
		return nil
	})
}

// outcomeOf formats a tick's outcome for comparison with a history record.
func outcomeOf(tick time.Time, outcome tidekeeperv1.Outcome, reason string, earlier int32) string {
	return fmt.Sprintf("%s %s %s and %d before", tick.UTC().Format("2006-01-02 15:04:05"), outcome, reason, earlier)
}

func succeeded(tick time.Time) string { return outcomeOf(tick, tidekeeperv1.OutcomeSucceeded, "", 0) }

// eventually waits until the history consists of the given records, the latest first, and no
// restart is running.
func (s *fixture) eventually(t *testing.T, what string, want ...string) {
	t.Helper()
	framework.Eventually(t, what, func() error {
		s.Refresh(t, s.restart)
		if active := s.restart.Status.Active; active != nil {
			return fmt.Errorf("the restart for %s is still running", active.ScheduledTime)
		}
		return s.history(want)
	})
	s.sent(t, want)
}

// stays checks that the history still consists of the given records, and that no restart is
// running.
func (s *fixture) stays(t *testing.T, what string, want ...string) {
	t.Helper()
	s.awaitMarker(t)
	s.Refresh(t, s.restart)
	if active := s.restart.Status.Active; active != nil {
		t.Errorf("%s: the restart for %s is running", what, active.ScheduledTime)
	}
	if err := s.history(want); err != nil {
		t.Errorf("%s: %v", what, err)
	}
	s.sent(t, want)
}

func (s *fixture) history(want []string) error {
	var got []string
	for _, r := range s.restart.Status.History {
		got = append(got, outcomeOf(r.ScheduledTime.Time, r.Outcome, r.Reason, r.EarlierTicks))
		if r.CompletedTime.Before(&r.ScheduledTime) || r.StartedTime != nil && r.CompletedTime.Before(r.StartedTime) {
			return fmt.Errorf("a restart completed before it started: %+v", r)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		return fmt.Errorf("history (-want +got):\n%s", diff)
	}
	return nil
}

// sent fails the test unless the pod template was written once for each started tick.
func (s *fixture) sent(t *testing.T, history []string) {
	t.Helper()
	started := int64(0)
	for _, r := range s.restart.Status.History {
		if r.StartedTime != nil {
			started++
		}
	}
	s.Refresh(t, s.deployment)
	if got := s.deployment.Generation - 1; got != started {
		t.Errorf("the pod template was written %d times; the history is %q", got, history)
	}
}

// hour is 10:00 UTC in two days, far from changes to or from summer time.
var hour = time.Now().UTC().AddDate(0, 0, 2).Truncate(24 * time.Hour).Add(10 * time.Hour)

// TestBackAndForth sets the clock back and forth by hours, and checks that no tick runs twice or
// too late.
func TestBackAndForth(t *testing.T) {
	s := newFixture(t, "0 * * * *", 0)
	at := func(hours int) time.Time { return hour.Add(time.Duration(hours) * time.Hour) }
	clock := framework.NewClock(t, at(0).Add(-30*time.Minute))
	s.start(t, clock)
	s.enable(t)

	clock.Set(t, at(0).Add(-time.Second))
	history := []string{succeeded(at(0))}
	s.eventually(t, "a tick comes", history...)

	clock.Set(t, at(-2).Add(-time.Second))
	s.stays(t, "back by two hours, a tick that was not decided then is not a tick now", history...)
	clock.Set(t, at(0).Add(-time.Second))
	s.stays(t, "the same tick comes a second time", history...)

	clock.Set(t, at(1).Add(-time.Second))
	history = append([]string{succeeded(at(1))}, history...)
	s.eventually(t, "the next tick comes", history...)

	clock.Set(t, at(6).Add(30*time.Minute))
	history = append([]string{
		outcomeOf(at(6), tidekeeperv1.OutcomeMissed, "DeadlineExceeded", 0),
		outcomeOf(at(5), tidekeeperv1.OutcomeMissed, "Superseded", 3),
	}, history...)
	s.eventually(t, "on by five hours and a half, it is too late", history...)

	clock.Set(t, at(2))
	s.stays(t, "back by four hours, ticks that were missed do not come back", history...)
	// After an edit of the spec, ticks count from the current time. Ticks that were already written
	// to the template do not run again.
	s.Change(t, s.restart, func() { s.restart.Spec.FailureLimit = 5 })
	s.eventuallyIs(t, "Scheduled")
	clock.Set(t, at(3).Add(-time.Second))
	history = append([]string{succeeded(at(3))}, history...)
	s.eventually(t, "a new spec starts from now", history...)
}

// TestSetBackWhileActive sets the clock back by hours during a restart, which must complete as
// usual.
func TestSetBackWhileActive(t *testing.T) {
	s := newFixture(t, "0 * * * *", 3*time.Second)
	clock := framework.NewClock(t, hour.Add(-30*time.Minute))
	s.start(t, clock)
	s.enable(t)
	clock.Set(t, hour.Add(-time.Second))
	s.eventuallySent(t, 1)
	clock.Set(t, hour.Add(-3*time.Hour))
	s.Change(t, s.restart, func() { s.restart.Spec.HistoryLimit = 5 })
	framework.Eventually(t, "the restart has completed", func() error {
		s.Refresh(t, s.restart)
		if s.restart.Status.Active != nil || len(s.restart.Status.History) != 1 {
			return fmt.Errorf("status %+v", s.restart.Status)
		}
		return nil
	})
	record := s.restart.Status.History[0]
	if record.Outcome != tidekeeperv1.OutcomeSucceeded || record.CompletedTime.Before(record.StartedTime) {
		t.Errorf("the record is %+v; want success, and a completion after the start", record)
	}
	s.sent(t, nil)
}

// TestSetBackWhileClaimed sets the clock back by hours while a tick is claimed but not due yet. The
// claim must be withdrawn, and the tick must run when it is due by the changed clock.
func TestSetBackWhileClaimed(t *testing.T) {
	s := newFixture(t, "0 * * * *", 0)
	// The clock stands still, so that the tick is not due before the claim is written, regardless
	// of how long that takes.
	clock := framework.NewStandingClock(t, hour.Add(-30*time.Minute))
	s.start(t, clock)
	s.enable(t)
	// Claims are spread over a time that depends on the restart budget. All are made at least a
	// second before the tick.
	clock.Set(t, hour.Add(-time.Second))
	s.eventuallyIs(t, "Restarting")
	clock = clock.Going()
	s.clock = clock
	clock.Set(t, hour.Add(-3*time.Hour))
	s.eventuallyIs(t, "Scheduled")
	s.stays(t, "back by three hours, nothing is restarted")

	clock.Set(t, hour.Add(-time.Second))
	s.eventually(t, "the tick comes", succeeded(hour))
}

// TestLeaderAhead kills a leader whose clock is a minute ahead during a restart. By the next
// leader's clock the restart's tick is still in the future, but the tick must not run twice.
func TestLeaderAhead(t *testing.T) {
	s := newFixture(t, "* * * * *", 2*time.Second)
	// The clocks stand still until both managers run, so that no tick is due before, regardless of how
	// long that takes.
	ahead, behind := framework.NewStandingClock(t, hour.Add(-30*time.Second)), framework.NewStandingClock(t, hour.Add(-90*time.Second))
	leader := s.elect(t, ahead)
	s.enable(t)
	s.elect(t, behind)
	ahead, behind = ahead.Going(), behind.Going()
	s.clock = behind

	ahead.Set(t, hour.Add(-time.Second))
	behind.Set(t, hour.Add(-61*time.Second))
	// If the tick were only claimed, the next leader would send it when the tick is due by its own
	// clock.
	s.eventuallySent(t, 1)
	leader.Kill(t)
	s.expire(t)
	framework.Eventually(t, "the next leader completes it", func() error {
		s.Refresh(t, s.restart)
		if s.restart.Status.Active != nil {
			return errors.New("it is still running")
		}
		return nil
	})
	behind.Set(t, hour.Add(-time.Second))
	s.awaitMarker(t)
	behind.Set(t, hour.Add(59*time.Second))
	framework.Eventually(t, "the next tick runs", func() error {
		s.Refresh(t, s.restart)
		if len(s.restart.Status.History) < 2 || s.restart.Status.Active != nil {
			return errors.New("not yet")
		}
		return nil
	})
	for i, want := range []time.Time{hour.Add(time.Minute), hour} {
		if r := s.restart.Status.History[i]; !r.ScheduledTime.Time.Equal(want) || r.Outcome != tidekeeperv1.OutcomeSucceeded {
			t.Errorf("record %d is %+v; want that %s succeeded", i, r, want)
		}
	}
	s.sent(t, nil)
}

// TestSuspended simulates a suspend of the machine across several ticks. Ticks whose deadline has
// passed are not run afterwards, and the next tick is on time.
func TestSuspended(t *testing.T) {
	s := newFixture(t, "0 * * * *", 0)
	clock := framework.NewClock(t, hour.Add(-30*time.Minute))
	manager := s.start(t, clock)
	s.enable(t)
	manager.Signal(t, syscall.SIGSTOP)
	clock.Set(t, hour.Add(3*time.Hour+20*time.Minute))
	manager.Signal(t, syscall.SIGCONT)
	history := []string{
		outcomeOf(hour.Add(3*time.Hour), tidekeeperv1.OutcomeMissed, "DeadlineExceeded", 0),
		outcomeOf(hour.Add(2*time.Hour), tidekeeperv1.OutcomeMissed, "Superseded", 2),
	}
	s.eventually(t, "what is too late is on record", history...)
	clock.Set(t, hour.Add(4*time.Hour-time.Second))
	s.eventually(t, "the next tick comes", append([]string{succeeded(hour.Add(4 * time.Hour))}, history...)...)
}

// TestSuspendedLeader suspends the leader across a tick until its lease has expired. The next
// leader must run the tick. The old leader must exit when it resumes, without restarting anything.
func TestSuspendedLeader(t *testing.T) {
	s := newFixture(t, "0 * * * *", 0)
	clock := framework.NewClock(t, hour.Add(-30*time.Minute))
	// Once resumed, the old leader exits when it has been without its lease for the renew deadline.
	leader := s.elect(t, clock, "--leader-elect-renew-deadline=30s")
	s.enable(t)
	s.elect(t, clock)
	leader.Signal(t, syscall.SIGSTOP)
	s.expire(t)
	clock.Set(t, hour.Add(-time.Second))
	s.eventually(t, "the next leader restarts", succeeded(hour))
	leader.Signal(t, syscall.SIGCONT)
	if code := leader.Wait(t); code == 0 {
		t.Error("the old leader exited with code 0")
	}
	s.stays(t, "the old leader woke up", succeeded(hour))
}
