// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/test/framework"
)

// truthWorld is a namespace with a ScheduledRestart "web", for comparing the commands' predictions
// with the actual outcome.
type truthWorld struct {
	namespace string
	// tick is the only scheduled time within a day.
	tick    time.Time
	restart *tidekeeperv1.ScheduledRestart
}

// says runs a command on the ScheduledRestart, and checks that its exit code is `code` and that its
// output matches the patterns in the given order.
func (w *truthWorld) says(t *testing.T, args string, code int, patterns ...string) string {
	t.Helper()
	r := command{args: append(strings.Fields("restarts "+args), "-n", w.namespace)}.run(t)
	said := r.stdout + r.stderr
	if r.code != code {
		t.Errorf("%s: restarts %s: exit code %d, want %d\n%s", w.namespace, args, r.code, code, said)
	}
	rest := said
	for _, pattern := range patterns {
		at := regexp.MustCompile(pattern).FindStringIndex(rest)
		if at == nil {
			t.Errorf("%s: restarts %s does not say %q (after what it has said before):\n%s", w.namespace, args, pattern, said)
			continue
		}
		rest = rest[at[1]:]
	}
	return said
}

// records waits until the ScheduledRestart's history consists of the given records, the latest
// first, and no restart is in progress. Meanwhile it advances the manager's clock, unless `clock`
// is nil.
func (w *truthWorld) records(t *testing.T, clock *framework.Clock, want ...string) {
	t.Helper()
	framework.Eventually(t, fmt.Sprintf("%s has the records %q", w.namespace, want), func() error {
		if clock != nil {
			clock.Set(t, clock.Now(t).Add(time.Second))
		}
		cluster.Refresh(t, w.restart)
		got := []string{}
		for _, record := range w.restart.Status.History {
			got = append(got, strings.TrimSpace(fmt.Sprintf("%s %s %s", record.Trigger, record.Outcome, record.Reason)))
		}
		if d := cmp.Diff(append([]string{}, want...), got); d != "" || w.restart.Status.Active != nil {
			return fmt.Errorf("(-want +got):\n%s%+v", d, w.restart.Status)
		}
		return nil
	})
}

// startedAt checks the start time in the latest history record.
func (w *truthWorld) startedAt(t *testing.T, want time.Time) {
	t.Helper()
	if started := w.restart.Status.History[0].StartedTime; started == nil || !started.Time.Equal(want) {
		t.Errorf("%s: started at %s, want %s", w.namespace, started, want)
	}
}

// clockTime formats a time as the commands do.
func clockTime(t time.Time) string { return t.UTC().Format("15:04") }

// aTruthWorld creates a Deployment and its ScheduledRestart. `change` edits the Deployment and
// `spec` the ScheduledRestart, unless they are nil.
func aTruthWorld(t *testing.T, namespace string, tick time.Time, deadline int32, change func(*appsv1.Deployment), spec func(*tidekeeperv1.ScheduledRestart)) *truthWorld {
	t.Helper()
	aNamespace(t, namespace)
	aDeployment(t, namespace, "web")
	if change != nil {
		d := &appsv1.Deployment{}
		if err := cluster.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "web"}, d); err != nil {
			t.Fatal(err)
		}
		cluster.Change(t, d, func() { change(d) })
	}
	tick = tick.UTC()
	w := &truthWorld{namespace: namespace, tick: tick}
	w.restart = aRestart(t, namespace, "web", fmt.Sprintf("%d %d * * *", tick.Minute(), tick.Hour()), func(r *tidekeeperv1.ScheduledRestart) {
		r.Spec.StartingDeadlineSeconds = deadline
		if spec != nil {
			spec(r)
		}
	})
	framework.Eventually(t, namespace+" is observed", func() error {
		cluster.Refresh(t, w.restart)
		return diff(w.restart.Generation, w.restart.Status.ObservedGeneration)
	})
	return w
}

// aFreezeOf creates a Freeze that applies to one namespace until the given time.
func aFreezeOf(t *testing.T, namespace string, until time.Time) {
	t.Helper()
	cluster.Apply(t, &tidekeeperv1.Freeze{ObjectMeta: metav1.ObjectMeta{Name: namespace}, Spec: tidekeeperv1.FreezeSpec{
		Until: metav1.Time{Time: until}, Reason: "books", NamespaceSelector: &tidekeeperv1.NamespaceSelector{MatchLabels: map[string]tidekeeperv1.LabelValue{"kubernetes.io/metadata.name": tidekeeperv1.LabelValue(namespace)}},
	}})
}

// olderThanNow waits until all pods of a namespace were created before the current second. The time
// of a request is in whole seconds, and a pod created in the same second counts as new.
func olderThanNow(t *testing.T, namespace string) {
	t.Helper()
	framework.Eventually(t, "the pods of "+namespace+" are older than a request", func() error {
		pods := &corev1.PodList{}
		if err := cluster.List(t.Context(), pods, client.InNamespace(namespace)); err != nil {
			return err
		}
		for i := range pods.Items {
			if created := pods.Items[i].CreationTimestamp; !created.Time.Before(time.Now().Truncate(time.Second)) {
				return fmt.Errorf("%s was created at %s", pods.Items[i].Name, created)
			}
		}
		return nil
	})
}

// TestRestartsAnswersComeTrue checks that the commands' predictions come true, in namespaces with
// an obstacle to each tick and each request. The manager has a single slot for restarts, which the
// plugin must find out without a flag. Only the test advances the manager's clock.
func TestRestartsAnswersComeTrue(t *testing.T) {
	base := time.Now().Truncate(time.Minute)
	clock := framework.NewStandingClock(t, base)
	at := func(minutes int) time.Time { return base.Add(time.Duration(minutes) * time.Minute) }
	cluster.WithClocks(t).StartManager(t, append(append(cluster.ElectUntilReleased(t), oneSlot...), clock.Flag())...)
	cluster.AddNodes(t, "truth", 2)

	free := aTruthWorld(t, "truth-free", at(60), 60, nil, nil)
	frozen := aTruthWorld(t, "truth-frozen", at(70), 60, nil, nil)
	aFreezeOf(t, frozen.namespace, at(75))
	held := aTruthWorld(t, "truth-held", at(80), 3600, nil, nil)
	aFreezeOf(t, held.namespace, at(85))
	paused := aTruthWorld(t, "truth-paused", at(90), 60, func(d *appsv1.Deployment) { d.Spec.Paused = true }, nil)
	sick := aTruthWorld(t, "truth-sick", at(100), 60, func(d *appsv1.Deployment) { d.Spec.Template.Spec.NodeSelector = map[string]string{"no": "node"} }, func(r *tidekeeperv1.ScheduledRestart) {
		r.Spec.Precondition = tidekeeperv1.PreconditionHealthy
	})
	outside := aTruthWorld(t, "truth-outside", at(110), 60, nil, func(r *tidekeeperv1.ScheduledRestart) {
		opens := at(240).UTC()
		r.Spec.Windows = []tidekeeperv1.RestartWindow{{Schedule: tidekeeperv1.CronExpression(fmt.Sprintf("%d %d * * *", opens.Minute(), opens.Hour())), DurationSeconds: 600}}
	})
	for _, freeze := range []string{frozen.namespace, held.namespace} {
		framework.Eventually(t, "the manager knows the Freeze "+freeze, func() error {
			f := &tidekeeperv1.Freeze{ObjectMeta: metav1.ObjectMeta{Name: freeze}}
			cluster.Refresh(t, f)
			if len(f.Status.Conditions) == 0 {
				return fmt.Errorf("%+v", f.Status)
			}
			return nil
		})
	}
	const due = ` \(in \d+`

	free.says(t, "", 0, `web .* `+clockTime(free.tick)+due+`\w+\)\n`)
	free.says(t, "next", 0, clockTime(free.tick)+` +1 +web\n`)
	free.says(t, "forecast", 0, clockTime(free.tick)+` +1 +0 +web\n`, `Nothing will be missed`, `Assumed: workloads stay as they are, 1m for`)
	free.says(t, "explain deployment/web --count 1", 0, `starts \w+ `+clockTime(free.tick)+`\n`)
	free.shows(t, `A restart that is requested now would be started`, `Health ● open`)
	free.says(t, "gates web", 0, `Progress +open`, `Budget +open +other restarts use 0 of 1 slots, and 0 of the 1 that this namespace may have\n`, `would be started`)

	frozen.says(t, "", 0, clockTime(frozen.tick)+due+`\w+\), missed by Freeze truth-frozen\n`)
	frozen.says(t, "next", 0, clockTime(frozen.tick)+` +0 +web \(Missed: Frozen\)\n`)
	frozen.says(t, "forecast", 2, `Missed/Frozen`)
	frozen.says(t, "explain deployment/web --count 1", 0, `Missed: Frozen\n`)
	frozen.shows(t, `A restart that is requested now would have to wait`, `Freeze ✖ closed Freeze truth-frozen`)
	frozen.says(t, "gates web", 2, `Freeze +closed +Frozen`, `would have to wait`)
	frozen.says(t, "now web", 0, `requested a restart`, `warning: web: Freeze truth-frozen until \S+: books, and it is missed at its deadline`)

	held.says(t, "", 0, clockTime(held.tick)+due+`\w+\), held by Freeze truth-held until \w+ `+clockTime(at(85))+`\n`)
	held.says(t, "next", 0, clockTime(at(85))+` +1 +web \(tick `+held.tick.Format(time.RFC3339)+`\)\n`)
	held.says(t, "forecast", 0, clockTime(at(85))+` +1 +0 +web\n`)
	held.says(t, "explain deployment/web --count 1", 0, `starts \w+ `+clockTime(at(85))+`\n`)

	// The commands report each obstacle before a request makes the manager report it in the status.
	paused.says(t, "", 0, `Scheduled .*`+clockTime(paused.tick)+due+`\w+\), now TargetPaused\n`)
	paused.says(t, "-o wide", 0, `; now Deployment web is paused\n`)
	paused.shows(t, `Health ✖ closed Deployment web is paused`)
	paused.says(t, "next", 0, clockTime(paused.tick)+` +0 +web \(Missed: TargetPaused\)\n`)
	paused.says(t, "forecast", 2, `Missed/TargetPaused`)
	paused.says(t, "explain srestart/web --count 1", 0, `Missed: TargetPaused\n`)
	paused.says(t, "gates web", 2, `Health +closed +TargetPaused`)
	paused.says(t, "now web", 0, `requested a restart`, `warning: web: Deployment web is paused\n`)

	sick.says(t, "", 0, `Scheduled .*`+clockTime(sick.tick)+due+`\w+\), now Target(Rolling|Unhealthy)\n`)
	sick.shows(t, `Health ✖ closed Deployment web is `)
	sick.says(t, "gates web", 2, `Health +closed +Target`)
	sick.says(t, "now web", 0, `requested a restart`, `warning: web: Deployment web is `)

	outside.says(t, "next", 0, `No restart will start within 24h.`)
	outside.says(t, "explain deployment/web --count 1", 0, `left out: outside its windows\n`)
	outside.says(t, "gates web", 2, `Window +closed +WindowClosed`)
	outside.says(t, "now web", 0, `requested a restart`, `warning: web: no window is open; the next one opens at `+at(240).UTC().Format(time.RFC3339)+`\n`)

	t.Run("and the world plays on", func(t *testing.T) {
		// Requests that wait longer than their deadline are missed by this time.
		clock.Set(t, at(50))
		frozen.records(t, &clock, "Request Missed Frozen")
		paused.records(t, &clock, "Request Missed TargetPaused")
		framework.Eventually(t, "the request of one that is not healthy is missed", func() error {
			cluster.Refresh(t, sick.restart)
			if h := sick.restart.Status.History; len(h) != 1 || h[0].Outcome != tidekeeperv1.OutcomeMissed {
				return fmt.Errorf("%+v", sick.restart.Status)
			}
			return nil
		})
		clock.Set(t, free.tick)
		free.records(t, nil, "Schedule Succeeded")
		free.startedAt(t, free.tick)
		clock.Set(t, frozen.tick.Add(2*time.Minute))
		frozen.records(t, nil, "Schedule Missed Frozen", "Request Missed Frozen")
		clock.Set(t, held.tick.Add(2*time.Minute))
		eventuallyStatus(t, held.namespace, "web", "Frozen")
		clock.Set(t, at(85))
		held.records(t, nil, "Schedule Succeeded")
		held.startedAt(t, at(85))
		clock.Set(t, paused.tick.Add(2*time.Minute))
		paused.records(t, nil, "Schedule Missed TargetPaused", "Request Missed TargetPaused")
		clock.Set(t, outside.tick.Add(2*time.Minute))
		eventuallyStatus(t, outside.namespace, "web", "WindowClosed")
		clock.Set(t, at(240))
		outside.records(t, nil, "Request Succeeded")
		outside.startedAt(t, at(240))
	})
}

// TestRestartsUnderWayComeTrue starts a restart that uses up the budget because its eviction is
// rejected. The commands' predictions must come true for this restart, for a request that waits
// behind it, and for another schedule that lacks a slot.
func TestRestartsUnderWayComeTrue(t *testing.T) {
	clock := framework.NewStandingClock(t, time.Now())
	cluster.WithClocks(t).StartManager(t, append(append(cluster.ElectUntilReleased(t), oneSlot...), clock.Flag())...)
	cluster.AddNodes(t, "way", 2)
	tick := time.Now().Add(12 * time.Hour)
	other := aTruthWorld(t, "way-other", tick, 3600, nil, nil)
	refused := aTruthWorld(t, "way-refused", tick, 3600, nil, func(r *tidekeeperv1.ScheduledRestart) { r.Spec.Method = tidekeeperv1.MethodEvict })
	all := intstr.FromString("100%")
	budget := &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: refused.namespace, Name: "all"},
		Spec:       policyv1.PodDisruptionBudgetSpec{MinAvailable: &all, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}},
	}
	cluster.Apply(t, budget)
	framework.Eventually(t, "the disruption budget counts the pods", func() error {
		cluster.Refresh(t, budget)
		return diff(int32(2), budget.Status.CurrentHealthy)
	})
	olderThanNow(t, refused.namespace)
	refused.says(t, "now web", 0, `requested a restart of Deployment web at \S+\n$`)
	framework.Eventually(t, "an eviction is refused", func() error {
		clock.Set(t, clock.Now(t).Add(time.Second))
		cluster.Refresh(t, refused.restart)
		if a := refused.restart.Status.Active; a == nil || a.Eviction == nil || a.Eviction.Refused == "" {
			return fmt.Errorf("%+v", a)
		}
		return nil
	})
	why := regexp.QuoteMeta(refused.restart.Status.Active.Eviction.Refused)
	refused.says(t, "", 0, `web .* under way for \w+, an eviction is refused\n`)
	refused.says(t, "next", 0, `under way: web`)
	refused.says(t, "gates web", 2, `Progress +closed +Restarting +a restart for the tick of \S+ is in progress; `+why, `would have to wait`)
	refused.says(t, "now web", 0, `; a restart is in progress, in which `+why+`, and this one follows it if pods older than this request are left by then\n`)
	other.says(t, "gates web", 2, `Budget +closed +BudgetExhausted +other restarts use 1 of 1 slots, and 0 of the 1 that this namespace may have\n`)
	other.says(t, "now web", 0, `requested a restart`, `warning: web: other restarts use 1 of 1 slots`)

	// The requests wait as predicted, and their restarts start once the eviction is allowed.
	clock.Set(t, time.Now().Add(time.Second))
	framework.Eventually(t, "a request waits for the slot", func() error {
		clock.Set(t, clock.Now(t).Add(time.Second))
		return diff(true, strings.Contains(other.says(t, "", 0), "BudgetExhausted"))
	})
	cluster.Delete(t, budget)
	refused.records(t, &clock, "Request Skipped AlreadyRestarted", "Request Succeeded") // The second request has nothing to do, because all pods are newer than the request.
	other.records(t, &clock, "Request Succeeded")
}

// TestRestartsWithoutAManager checks that each command reports that no manager leads, and since
// when. Requests wait until a manager runs.
func TestRestartsWithoutAManager(t *testing.T) {
	cluster.AddNodes(t, "nobody", 1)
	m := cluster.StartManager(t, cluster.ElectUntilReleased(t)...)
	w := aTruthWorld(t, "nobody", time.Now().Add(12*time.Hour), 3600, nil, nil)
	m.Stop(t)
	const none = `note: no manager leads: the lease tidekeeper has (had )?no holder.* \(namespace tidekeeper-system\): `
	w.says(t, "", 0, none+"this may be out of date: see kubectl tide check\n")
	for args, code := range map[string]int{"next": 0, "forecast": 0, "explain deployment/web": 0} {
		w.says(t, args, code, none+"nothing is started until one does: see kubectl tide check\n")
	}
	w.says(t, "gates web", 2, `Manager +closed +NoLeader +no manager leads: the lease tidekeeper has (had )?no holder.* \(namespace tidekeeper-system\): nothing is started until one does\n`, `would have to wait`)
	w.says(t, "now web", 0, none+"the request waits until one does: see kubectl tide check\n")
	if w.records(t, nil); w.restart.Status.PendingRequestTime != nil {
		t.Errorf("a manager has seen the request: %+v", w.restart.Status)
	}
	// Without a lease, only the manager's writes to objects show that it is running.
	cluster.Delete(t, &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: framework.ManagerNamespace, Name: "tidekeeper"}})
	w.says(t, "now web", 0, `note: no manager has (noticed the request yet|observed ScheduledRestart web for \w+): the request waits until one does: see kubectl tide check\n`)
	framework.Eventually(t, "the request is said to be unobserved", func() error {
		r := command{args: []string{"restarts", "gates", "web", "-n", "nobody"}}.run(t)
		if !regexp.MustCompile(`Manager +closed +NoLeader +no manager has observed ScheduledRestart web for \w+: nothing is started until one does`).MatchString(r.stdout) {
			return fmt.Errorf("%s", r.stdout)
		}
		return nil
	})
	cluster.StartManager(t)
	w.records(t, nil, "Request Succeeded")
	w.says(t, "gates web", 0, `Budget +open +other restarts use 0 of 20 slots, and 0 of the 10 that this namespace may have \(assumed: --max-concurrent-restarts 20, --restart-namespace-share 50\)\n`)
}
