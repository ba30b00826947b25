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
	// quiet is the name of the neighbour's pool and namespace, and the others are more namespaces,
	// after those of tenants by name. In none of them two restarts are due at once: of a
	// namespace with a slot, the second restart comes after those of namespaces without.
	quiet, still, steady, tranquil = "quiet", "still", "steady", "tranquil"
	// quietNodes is the number of nodes in the pool.
	quietNodes = 3
	// patience is how long the neighbour is waited for: so long that no machine is too busy. Whether
	// a tenant is in its way is not measured in seconds but in turns.
	patience = 5 * time.Minute
	// turns is how many restarts of tenants may be sent from when the manager knows that one of the
	// neighbour's is due until its turn has come: those that have a slot, one of each namespace
	// without a slot, and as many in the slots beside it while its turn is written.
	turns = 4 * slots
	// mostRequests is how many requests the manager may send on behalf of tenants from when
	// the neighbour asks for something until the manager begins with it.
	mostRequests = 1500
	// deadline is the deadline of the ticks that cannot start.
	deadline = 20
)

// neighbours are the namespaces of the neighbour.
var neighbours = []string{quiet, still, steady, tranquil}

// neighbour is a well-behaved tenant with a pool and five schedules.
type neighbour struct {
	pool *tidekeeperv1.NodePool
	// web is restarted every minute, and api on request. held is paused, so its ticks are
	// Missed at their deadline. aged is restarted for the age of its pods, and conf when its
	// ConfigMap changes.
	web, api, held, aged, conf *tidekeeperv1.ScheduledRestart
	config                     *corev1.ConfigMap
	page                       *page
	// mu lets several tricks have the neighbour served.
	mu      sync.Mutex
	changes int
	since   time.Time
	// audit follows the manager, and requests are all that it has sent so far, as the API server
	// has received them.
	audit    *framework.Audit
	requests []framework.Request
}

func newNeighbour(t *testing.T) *neighbour {
	t.Helper()
	cluster.AddNodes(t, quiet, quietNodes, "--pool="+quiet)
	for _, namespace := range neighbours {
		cluster.Apply(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})
	}
	n := &neighbour{pool: framework.Pool(quiet), since: time.Now(), audit: cluster.Audit(t, "tidekeeper/")}
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
	return n
}

// awaitTick waits until the latest tick on record has an outcome, and returns the records, the earliest
// first.
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

// ticks checks that each tick of the neighbour's schedule was a restart, when it was its turn. On a
// machine that is so busy that the restart of a tick takes longer than a minute, later ones are one
// restart together.
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
			// The turns of the tick that was sent count from when this one was due.
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

// deadlines checks that each tick that could not start is Missed after its deadline, with the gate
// as its reason: if it came as late as the next tick, it would have another.
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
