// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package tenants

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/test/framework"
)

const (
	// quiet is the name of the neighbour's pool and of its first namespace. The others are the
	// neighbour's other namespaces, which sort after the hostile tenant's. No two restarts in the
	// same namespace are due at the same time, because a restart in a namespace that holds a slot
	// comes after the restarts in namespaces without a slot.
	quiet, still, steady, tranquil = "quiet", "still", "steady", "tranquil"
	// quietNodes is the number of nodes in the neighbour's pool.
	quietNodes = 3
	// patience is the timeout for waits for the neighbour, long enough for any machine.
	// Interference by the hostile tenant is measured in turns, not in seconds.
	patience = 5 * time.Minute
	// turns is the maximum number of the hostile tenant's restarts that may be sent between the
	// time at which the manager notices that a restart of the neighbour is due and that restart's
	// turn. It allows for the restarts that hold a slot, one restart for each namespace without a
	// slot, and as many in the other slots while the turn is written.
	turns = 4 * slots
	// mostRequests is the maximum number of requests that the manager may send on behalf of the
	// hostile tenant between the neighbour's request and the manager's first write for it.
	mostRequests = 1500
	// deadline is the starting deadline, in seconds, of the restarts that cannot start.
	deadline = 20
)

// neighbours lists the neighbour's namespaces.
var neighbours = []string{quiet, still, steady, tranquil}

// neighbour is a well-behaved tenant with a pool and five ScheduledRestarts. The tests check that
// hostile tenants do not disturb it.
type neighbour struct {
	pool *tidekeeperv1.NodePool
	// web is restarted every minute, and api on request. held is a paused workload, so its ticks
	// are Missed at their deadline. aged is restarted for the age of its pods, and conf when its
	// ConfigMap changes.
	web, api, held, aged, conf *tidekeeperv1.ScheduledRestart
	config                     *corev1.ConfigMap
	page                       *page
	// mu serializes the checks of the neighbour, because concurrent tricks make them.
	mu      sync.Mutex
	changes int
	// since is the time from which on web's ticks count.
	since time.Time
	// audit follows the manager; requests lists all of the manager's requests so far, ordered by
	// their receipt.
	audit    *framework.Audit
	requests []framework.Request
}

func newNeighbour(t *testing.T) *neighbour {
	t.Helper()
	cluster.AddNodes(t, quiet, quietNodes, "--pool="+quiet)
	for _, namespace := range neighbours {
		cluster.Apply(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})
	}
	n := &neighbour{pool: framework.Pool(quiet), audit: cluster.Audit(t, "tidekeeper/")}
	n.pool.Spec.Labels = map[string]tidekeeperv1.LabelValue{"example.com/news": "none"}
	cluster.Apply(t, n.pool)
	ours := func(template *corev1.PodTemplateSpec) {
		template.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
	}
	n.web, n.api, n.held = restart(still, "web", nil), restart(quiet, "api", nil), restart(quiet, "held", nil)
	n.aged, n.conf = restart(steady, "aged", nil), restart(tranquil, "conf", nil)
	n.config = &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: tranquil, Name: "conf"}, Data: map[string]string{"news": "none"}}
	cluster.Apply(t, n.config)
	for r, replicas := range map[*tidekeeperv1.ScheduledRestart]int32{n.web: 2, n.api: 1, n.held: 0, n.aged: 1, n.conf: 1} {
		d := workload(r.Namespace, r.Name, replicas, ours).(*appsv1.Deployment)
		d.Spec.Paused = r == n.held
		if r == n.conf {
			d.Spec.Template.Spec.Containers[0].EnvFrom = []corev1.EnvFromSource{{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "conf"}}}}
		}
		cluster.Apply(t, d)
	}
	n.api.Spec.Suspend = true
	n.held.Spec.StartingDeadlineSeconds = deadline
	n.aged.Spec.Schedule, n.aged.Spec.MaxPodAgeSeconds = "", 24*60*60
	n.conf.Spec.Schedule, n.conf.Spec.OnConfigChange, n.conf.Spec.MinIntervalSeconds = "", tidekeeperv1.ConfigMapsOnly, 1
	for _, r := range []*tidekeeperv1.ScheduledRestart{n.web, n.api, n.held, n.aged, n.conf} {
		r.Spec.HistoryLimit = 100
		cluster.Apply(t, r)
	}
	n.since = n.web.CreationTimestamp.Time
	return n
}

// awaitTick waits until the latest recorded tick of a ScheduledRestart has the given outcome, and
// returns all of its ticks' records, the oldest first.
func awaitTick(t *testing.T, r *tidekeeperv1.ScheduledRestart, outcome tidekeeperv1.Outcome) []tidekeeperv1.RestartRecord {
	t.Helper()
	framework.EventuallyWithin(t, patience, fmt.Sprintf("the latest tick of %s is %s", r.Name, outcome), func() error {
		if cluster.Refresh(t, r); len(r.Status.History) == 0 || r.Status.History[0].Outcome != outcome {
			return fmt.Errorf("it is not: %+v", r.Status)
		}
		return nil
	})
	records := slices.Clone(r.Status.History)
	slices.Reverse(records)
	return records
}

// ticks checks that each tick of the neighbour's schedule resulted in a restart when it was its
// turn. If a restart takes longer than a minute on a busy machine, several ticks share the next
// restart.
func (n *neighbour) ticks(t *testing.T) {
	records := awaitTick(t, n.web, tidekeeperv1.OutcomeSucceeded)
	next := n.since.Truncate(time.Minute).Add(time.Minute)
	var due time.Time
	for _, record := range records {
		tick := record.ScheduledTime.Time
		if first := tick.Add(-time.Duration(record.EarlierTicks) * time.Minute); !first.Equal(next) {
			t.Errorf("after the tick before %s comes that of %s", next.Format(time.TimeOnly), first.Format(time.TimeOnly))
		}
		next = tick.Add(time.Minute)
		if due.IsZero() {
			due = tick
		}
		switch {
		case record.Outcome == tidekeeperv1.OutcomeMissed && (record.Reason == tidekeeperv1.ReasonSuperseded || record.Reason == tidekeeperv1.ReasonBudgetExhausted):
			// The shared restart's turns count from its first tick's due time.
			t.Logf("the tick of %s was one with the next: %s", tick.Format(time.TimeOnly), record.Message)
		case record.Outcome != tidekeeperv1.OutcomeSucceeded:
			t.Errorf("the tick of %s: %+v", tick.Format(time.TimeOnly), record)
		default:
			w := n.waited(t, n.web, due)
			due = time.Time{}
			w.check(t, "the tick of "+tick.Format(time.TimeOnly))
			t.Logf("the tick of %s started after %s, %s", tick.Format(time.TimeOnly), record.StartedTime.Sub(tick), w)
		}
	}
	if t.Failed() {
		t.Logf("the history: %+v", n.web.Status.History)
	}
}

// deadlines checks that each tick that could not start was recorded as Missed after its deadline,
// because of its gate. A tick that is recorded only at the next tick has another reason.
func (n *neighbour) deadlines(t *testing.T) {
	for _, record := range awaitTick(t, n.held, tidekeeperv1.OutcomeMissed) {
		tick := record.ScheduledTime.Format(time.TimeOnly)
		if record.Outcome != tidekeeperv1.OutcomeMissed || record.Reason != "TargetPaused" {
			t.Errorf("the tick of %s: %+v", tick, record)
		}
		if after := record.CompletedTime.Sub(record.ScheduledTime.Time); after < deadline*time.Second {
			t.Errorf("the tick of %s was Missed after %s, want it after %d s", tick, after, deadline)
		}
	}
}
