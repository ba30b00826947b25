// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package outage kills the API server or etcd under a busy manager, answers 429 to all of the
// manager's requests, and stops the manager for days. Afterwards the cluster must be in the same
// state as without the outage, and each restart must have happened once. The soak test in this
// package churns for the given time and checks that the manager's size does not grow.
//
// FAULTS=all makes the outages longer. OUTAGE sets the duration of the outage in
// TestTooManyRequests.
package outage

import (
	"errors"
	"fmt"
	"math/bits"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/test/framework"
)

// cluster is the cluster of the soak test; each outage has its own cluster.
var cluster framework.Cluster

func TestMain(m *testing.M) {
	framework.AllAtOnce()
	os.Exit(framework.Main(m, &cluster, "--nodes=1"))
}

// long returns the duration of an outage: `whole` with FAULTS=all, `slice` otherwise.
func long(slice, whole time.Duration) time.Duration {
	if framework.AllFaults() {
		return whole
	}
	return slice
}

// untilWatched is the timeout for a manager to act after its watches were cut. After several
// failures, client-go waits half a minute to a minute before it reopens a watch, and an action may
// depend on two watches in sequence.
const untilWatched = 4 * time.Minute

// workload is a pool with nodes, and a Deployment with a ScheduledRestart, all with the same name.
type workload struct {
	*framework.Cluster
	name       string
	pool       *tidekeeperv1.NodePool
	deployment *appsv1.Deployment
	restart    *tidekeeperv1.ScheduledRestart
	nodes      int
	// from is the number of the pool's first node.
	from int
}

// newWorkload creates a workload whose restarts take several seconds. With 0 nodes it has no pool.
func newWorkload(t *testing.T, c *framework.Cluster, name string, nodes int) *workload {
	t.Helper()
	w := &workload{
		Cluster: c, name: name, nodes: nodes, pool: framework.Pool(name), deployment: framework.Deployment(name, 1, framework.App),
		restart: framework.ScheduledRestart(name),
	}
	for i := range nodes {
		w.Apply(t, w.node(i))
	}
	w.pool.Spec = tidekeeperv1.NodePoolSpec{
		Labels: map[string]tidekeeperv1.LabelValue{w.key(): "1"},
		Taints: []tidekeeperv1.Taint{{Key: w.key(), Effect: corev1.TaintEffectNoSchedule}},
	}
	if nodes > 0 {
		w.Apply(t, w.pool)
	}
	w.deployment.Spec.Template.Annotations = map[string]string{"sandbox.tidekeeper.dev/containers-ready-after": "2s"}
	w.Apply(t, w.deployment)
	w.restart.Spec = tidekeeperv1.ScheduledRestartSpec{TargetRef: tidekeeperv1.TargetRef{Kind: "Deployment", Name: name}, Suspend: true}
	w.Apply(t, w.restart)
	return w
}

func (w *workload) key() string { return "example.com/" + w.name }

func (w *workload) node(i int) *corev1.Node {
	node := framework.Node(fmt.Sprintf("%s-%d", w.name, i))
	node.Labels = map[string]string{tidekeeperv1.RoleLabelPrefix + w.name: ""}
	return node
}

// settled returns nil if the pool's nodes have the label with the given value and nothing else of
// the pool, and no restart is running.
func (w *workload) settled(t *testing.T, value string) error {
	t.Helper()
	w.Refresh(t, w.pool)
	w.Refresh(t, w.restart)
	if w.restart.Status.Active != nil {
		return errors.New("a restart is running")
	}
	if int(w.pool.Status.NodeCount) != w.nodes {
		return fmt.Errorf("the pool has %d nodes, want %d", w.pool.Status.NodeCount, w.nodes)
	}
	for i := range w.nodes {
		node := w.node(w.from + i)
		w.Refresh(t, node)
		if on := node.Labels[w.key()]; on != value || len(node.Spec.Taints) != 1 || node.Spec.Taints[0].Key != w.key() {
			return fmt.Errorf("node %s has %s=%q and the taints %v", node.Name, w.key(), on, node.Spec.Taints)
		}
	}
	return errors.Join(
		framework.ReadyIs(w.pool.Status.Conditions, w.pool.Generation, "Healthy"),
		framework.ReadyIs(w.restart.Status.Conditions, w.restart.Generation, "Suspended"),
	)
}

// up waits until the workload is settled for the first time.
func (w *workload) up(t *testing.T) {
	t.Helper()
	framework.EventuallyWithin(t, untilWatched, w.name+" is up", func() error {
		w.Refresh(t, w.deployment)
		if w.deployment.Status.ReadyReplicas != 1 {
			return errors.New("the Deployment is not up")
		}
		return w.settled(t, "1")
	})
}

// begin changes the pool, requests a restart, and returns its tick.
func (w *workload) begin(t *testing.T) (tick time.Time) {
	t.Helper()
	w.Change(t, w.pool, func() { w.pool.Spec.Labels[w.key()] = "2" })
	return w.RequestRestart(t, w.restart, time.Now())
}

// ends waits until the pool change and the restart that begin requested are complete, and checks
// that each was done once.
func (w *workload) ends(t *testing.T, tick time.Time) {
	t.Helper()
	framework.EventuallyWithin(t, untilWatched, w.name+" has completed", func() error {
		if err := w.settled(t, "2"); err != nil {
			return err
		}
		if history := w.restart.Status.History; len(history) != 1 || !history[0].ScheduledTime.Time.Equal(tick) || history[0].Outcome != tidekeeperv1.OutcomeSucceeded {
			return fmt.Errorf("the history is %+v", history)
		}
		return nil
	})
	w.Refresh(t, w.deployment)
	if w.deployment.Generation != 2 {
		t.Errorf("the template was written %d times, want once", w.deployment.Generation-1)
	}
}

// shortLeases lists flags for managers with leader election that lose their lease in an outage of a
// few seconds.
var shortLeases = []string{
	"--leader-elect", "--leader-elect-resource-namespace=" + framework.ManagerNamespace,
	"--leader-elect-lease-duration=3s", "--leader-elect-renew-deadline=2s", "--leader-elect-retry-period=200ms",
}

// TestControlPlaneDies kills the API server, then etcd, while the manager has work. Each outage
// lasts longer than a leader keeps its lease.
func TestControlPlaneDies(t *testing.T) {
	t.Parallel()
	c := framework.Start(t, "--nodes=1")
	first, second := supervise(t, c, shortLeases...), supervise(t, c, shortLeases...)
	for _, component := range []string{"kube-apiserver", "etcd"} {
		t.Run(component, func(t *testing.T) {
			w := newWorkload(t, c, "dies-"+component, 20)
			w.up(t)
			tick := w.begin(t)
			c.Component(t, "kill", component)
			time.Sleep(long(4*time.Second, 30*time.Second)) // sleep: the outage
			c.Component(t, "start", component)
			c.AwaitAPIServer(t)
			w.ends(t, tick)
		})
	}
	first.end(t)
	second.end(t)
}

// TestTooManyRequests answers 429 to all of a manager's requests except requests for its lease,
// while it has work, nodes change, and its watches are cut. The manager must keep running and retry
// each request with growing delays, or after the time in Retry-After. After the outage it must
// complete the work, once.
func TestTooManyRequests(t *testing.T) {
	t.Parallel()
	const nodes = 20
	outage := long(12*time.Second, 3*time.Minute)
	if text := os.Getenv("OUTAGE"); text != "" {
		var err error
		if outage, err = time.ParseDuration(text); err != nil || outage <= 0 {
			t.Fatalf("OUTAGE=%q: must be a duration, like 1h", text)
		}
	}
	c := framework.Start(t, "--nodes=1")
	proxy := c.StartProxy(t, "")
	manager := c.StartManager(t, append([]string{"--kubeconfig", proxy.Kubeconfig}, c.ElectUntilReleased(t)...)...)
	w := newWorkload(t, c, "refused", nodes)
	// The deadline is long enough for the restart to start after the outage.
	c.Change(t, w.restart, func() {
		w.restart.Spec.StartingDeadlineSeconds = int32((outage + 5*time.Minute).Seconds())
	})
	w.up(t)
	manager.AssertIdle(t)
	// With a Retry-After header, client-go delays retries; without the header, the controllers'
	// work queues delay them.
	proxy.Add(t, `
rules:
- name: at-once
  match: {resources: [nodes], verbs: [write]}
  fault: {kind: Error, code: 429}
- name: later
  match: {userAgents: ["*", "!*leader-election*"]}
  fault: {kind: Error, code: 429, retryAfter: 1s}
`)
	// Requests that were in flight when the rules were added may still be served.
	begin, mark := time.Now(), proxy.Mark(t)
	tick := w.begin(t)
	proxy.AwaitFired(t, "at-once", nodes)
	proxy.AwaitFired(t, "later", 1)
	time.Sleep(outage / 2) // sleep: the outage, with open watches
	proxy.Cut(t, "")
	c.Delete(t, w.node(0))
	c.Apply(t, w.node(nodes))
	time.Sleep(outage / 2) // sleep: the outage, without watches
	isWatch := func(p framework.Passed) bool { return strings.HasPrefix(p.Verb, "watch") || p.Verb == "list" }
	framework.Eventually(t, "a watch is refused", func() error {
		if !slices.ContainsFunc(proxy.PassedSince(t, mark), func(p framework.Passed) bool { return p.Fault == "Error" && isWatch(p) }) {
			return errors.New("none was")
		}
		return nil
	})
	manager.AssertSound(t)
	over := time.Now()
	proxy.Clear(t)
	outage = time.Since(begin)

	refused, watches := 0, 0
	things := map[string]int{}
	for _, p := range proxy.PassedSince(t, mark) {
		switch {
		case p.Fault == "Error":
			refused++
			things[fmt.Sprintf("%s: %s %s %s/%s", p.Rule, p.Verb, p.Resource, p.Namespace, p.Name)]++
			if isWatch(p) {
				watches++
			}
		case !strings.HasPrefix(p.Resource, "leases") && p.Status < 300 && !strings.HasPrefix(p.Verb, "watch") && p.Time.After(begin) && p.Time.Before(over):
			t.Errorf("%s %s %s was served", p.Verb, p.Resource, p.Name)
		}
	}
	// With Retry-After: 1, a retry every second is fine. Without it, the delays start at
	// 5 ms, double, and are limited to half a minute.
	doubling := bits.Len64(uint64(outage/(5*time.Millisecond))) + int(outage/(30*time.Second)) + 2
	busiest, most := "", 0
	for thing, times := range things {
		limit := doubling
		if strings.HasPrefix(thing, "later") {
			limit += int(outage / time.Second)
		}
		if times > limit {
			t.Errorf("%s was requested %d times in %s: more than %d, which is a retry storm", thing, times, outage.Round(time.Second), limit)
		}
		if times > most {
			busiest, most = thing, times
		}
	}
	t.Logf("in %s, %d requests were refused, %d of them watches and lists: %.1f a second, for %d things; most often, %d times, %s", outage.Round(time.Second), refused, watches,
		float64(refused)/outage.Seconds(), len(things), most, busiest)

	w.from++
	w.ends(t, tick)
	manager.AssertSound(t)
}

// TestAwayForDays starts a manager after three days without one, in which every schedule had
// hundreds of ticks and nodes changed. The manager must catch up with a bounded number of writes,
// and restart each workload at most once, and not all at the same time.
func TestAwayForDays(t *testing.T) {
	t.Parallel()
	const schedules, budget = 6, 2
	// The ticks are so far apart that none is due while the test makes its objects, or while the last
	// tick is served, however busy the machine is.
	const every, ticks = 20 * time.Minute, 3 * 24 * 3
	c := framework.Start(t, "--nodes=1", "--audit").WithClocks(t)
	begin := time.Now().Truncate(24 * time.Hour).Add(24*time.Hour + 30*time.Second)
	clock := framework.NewClock(t, begin)
	args := []string{clock.Flag(), fmt.Sprint("--max-concurrent-restarts=", budget), "--restart-namespace-share=100"}
	manager := c.StartManager(t, args...)
	pool := newWorkload(t, c, "away", 10)
	pool.up(t)
	all := make([]*workload, schedules)
	for i := range all {
		all[i] = newWorkload(t, c, fmt.Sprintf("away-%d", i), 0)
	}
	for _, w := range all {
		framework.Eventually(t, w.name+" is suspended", func() error {
			c.Refresh(t, w.deployment)
			c.Refresh(t, w.restart)
			if w.deployment.Status.ReadyReplicas != 1 {
				return errors.New("the Deployment is not up")
			}
			return framework.ReadyIs(w.restart.Status.Conditions, w.restart.Generation, "Suspended")
		})
		c.Change(t, w.restart, func() { w.restart.Spec.Suspend, w.restart.Spec.Schedule = false, "*/20 * * * *" })
		framework.Eventually(t, w.name+" has a next tick", func() error {
			c.Refresh(t, w.restart)
			return framework.ReadyIs(w.restart.Status.Conditions, w.restart.Generation, "Scheduled")
		})
	}
	manager.Kill(t)

	// Advance the clock by three days, and change the pool as well.
	tick := begin.Truncate(every).AddDate(0, 0, 3)
	clock.Set(t, tick.Add(20*time.Second))
	c.Change(t, pool.pool, func() { pool.pool.Spec.Labels[pool.key()] = "2" })
	audit := c.Audit(t, "tidekeeper/")
	manager = c.StartManager(t, args...)
	most := 0
	framework.EventuallyWithin(t, 2*framework.Patience, "the manager has caught up", func() error {
		// Read all objects with a single list: separate reads would show different states.
		list := &tidekeeperv1.ScheduledRestartList{}
		if err := c.List(t.Context(), list); err != nil {
			return err
		}
		active, open := 0, 0
		for _, r := range list.Items {
			if r.Status.Active != nil {
				active++
			}
		}
		for _, w := range all {
			c.Refresh(t, w.restart)
			if len(w.restart.Status.History) != 2 {
				open++
			}
		}
		most = max(most, active)
		if active+open > 0 {
			return fmt.Errorf("%d restarts are running and %d are still to come", active, open)
		}
		return pool.settled(t, "2")
	})
	if most > budget {
		t.Errorf("%d restarts were running at once, the limit is %d", most, budget)
	}
	for _, w := range all {
		last, before := w.restart.Status.History[0], w.restart.Status.History[1]
		if last.Outcome != tidekeeperv1.OutcomeSucceeded || !last.ScheduledTime.Time.Equal(tick) ||
			before.Outcome != tidekeeperv1.OutcomeMissed || before.EarlierTicks != ticks-2 {
			t.Errorf("%s: the history is %+v; want the last tick, and all before it in one", w.name, w.restart.Status.History)
		}
		if c.Refresh(t, w.deployment); w.deployment.Generation != 2 {
			t.Errorf("%s: the template was written %d times, want once", w.name, w.deployment.Generation-1)
		}
	}
	writes := map[string]int{}
	total := 0
	for _, r := range audit.Requests(t) {
		// The manager reviews its own rights when it starts. The reviews are create requests, but
		// write nothing.
		if r.Writes() && r.Resource != "events" && r.Resource != "selfsubjectaccessreviews" {
			writes[r.Resource+"/"+r.Subresource+" "+r.Name]++
			total++
		}
	}
	for what, count := range writes {
		if most := 8; count > most {
			t.Errorf("%s was written %d times, more than %d", what, count, most)
		}
	}
	t.Logf("after three days, %d schedules of %d ticks each and 10 nodes took %d writes; at most %d restarts at once", schedules, ticks, total, most)
	manager.AssertSound(t)
}
