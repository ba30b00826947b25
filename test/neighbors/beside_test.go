// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package neighbors

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/test/framework"
)

const (
	besidePools     = 3
	besideNamespace = "beside"
	besideRound     = "beside.example.com/round"
	deschedulerUser = "system:serviceaccount:kube-system:descheduler-sa"
	// besideTaint is a taint on the nodes of one pool, a different pool in each round.
	besideTaint = "beside=away:NoSchedule"
)

// besideWorld holds the objects that the test changes: pools of two nodes each, and for each pool a
// Deployment with a certificate. The Deployments' pods may run on all of these nodes.
type besideWorld struct {
	pools    []*tidekeeperv1.NodePool
	apps     []*appsv1.Deployment
	restarts []*tidekeeperv1.ScheduledRestart
	// renewed and requested count, for each Deployment, the certificate renewals and the restart
	// requests.
	renewed, requested []int
	// initial holds the revision of each Deployment's certificate before the first renewal.
	initial []int64
	// clock is a Deployment that is restarted every minute.
	clock       *appsv1.Deployment
	everyMinute *tidekeeperv1.ScheduledRestart
}

// TestBeside runs Tidekeeper's manager, the descheduler and cert-manager in parallel, while pools,
// certificates and restarts change all the time. It runs for the duration SOAK, or for a few rounds
// if SOAK is not set.
func TestBeside(t *testing.T) {
	duration, err := time.ParseDuration(cmp.Or(os.Getenv("SOAK"), "0s"))
	if err != nil {
		t.Fatalf("SOAK: %v", err)
	}
	if duration > 15*time.Minute {
		t.Fatal("SOAK is more than 15m: a history keeps 100 restarts")
	}
	interval := "3s"
	if duration > 0 {
		interval = "10s"
	}
	cluster.AddNodes(t, "beside", 2*besidePools, "--labels=beside=yes")
	installCertManager(t)
	manifests := authority
	for i := range besidePools {
		manifests += fmt.Sprintf(certificate, fmt.Sprint("web-", i))
	}
	inNamespace(t, besideNamespace, manifests)

	requests := cluster.Audit(t, "")
	manager := cluster.StartManager(t, "--optional-watches=configmaps,secrets", "--restart-change-settle=2s")
	startDescheduler(t, &cluster, interval)
	cluster.RunAsPod(t, "CERT_MANAGER_BIN", "cert-manager", "--service-account=cert-manager/cert-manager")

	w := newBesideWorld(t)
	nodes := watchNodes(t, client.MatchingLabels{"beside": "yes"})
	start := time.Now()
	round := 0
	for ; round < besidePools || time.Since(start) < duration; round++ {
		w.play(t, round+1)
	}
	t.Logf("%d rounds in %s", round, time.Since(start).Round(time.Second))

	// The descheduler must not evict any more pods when it checks all pods again.
	cluster.Change(t, w.everyMinute, func() { w.everyMinute.Spec.Suspend = true })
	w.eventuallyRestarted(t, w.everyMinute, "is at rest", func() error {
		if w.everyMinute.Status.Active != nil {
			return fmt.Errorf("it restarts: %+v", w.everyMinute.Status.Active)
		}
		return framework.ReadyIs(w.everyMinute.Status.Conditions, w.everyMinute.Generation, tidekeeperv1.ReasonSuspended)
	})
	manager.AssertIdle(t)
	pause, err := time.ParseDuration(interval)
	if err != nil {
		t.Fatal(err)
	}
	cluster.Sandbox(t, "status", "--until-quiet", (2 * pause).String(), "--timeout", "10m")

	w.assertRestarts(t)
	framework.Eventually(t, "the watch has seen the last of the nodes", func() error { return endsWith(nodes(), round) })
	log := requests.Requests(t)
	assertNodes(t, nodes(), log, round)
	assertNoFight(t, log)
	assertRetried(t, log)
	if evictions := assertEvicted(t, log); evictions < round {
		t.Errorf("the descheduler has evicted %d pods in %d rounds", evictions, round)
	}
}

func newBesideWorld(t *testing.T) *besideWorld {
	t.Helper()
	w := &besideWorld{renewed: make([]int, besidePools), requested: make([]int, besidePools), initial: make([]int64, besidePools)}
	deployment := func(name string) *appsv1.Deployment {
		d := framework.Deployment(name, 4, *framework.App.DeepCopy())
		d.Namespace = besideNamespace
		many := int32(1000)
		d.Spec.RevisionHistoryLimit = &many
		d.Spec.Template.Spec.NodeSelector = map[string]string{"beside": "yes"}
		return d
	}
	restart := func(d *appsv1.Deployment) *tidekeeperv1.ScheduledRestart {
		r := framework.ScheduledRestart(d.Name)
		r.Namespace = besideNamespace
		r.Spec.TargetRef = tidekeeperv1.TargetRef{Kind: "Deployment", Name: d.Name}
		r.Spec.HistoryLimit = 100
		return r
	}
	for i := range besidePools {
		name := fmt.Sprint("web-", i)
		pool := poolOf(name, tidekeeperv1.LabelValue(fmt.Sprint("beside-", 2*i+1)), tidekeeperv1.LabelValue(fmt.Sprint("beside-", 2*i+2)))
		pool.Spec.Labels = map[string]tidekeeperv1.LabelValue{besideRound: "0"}
		cluster.Apply(t, pool)
		w.pools = append(w.pools, pool)
		for _, node := range pool.Spec.Selector.MatchExpressions[0].Values {
			eventuallyNode(t, &cluster, string(node), besideRound, "0")
		}
		framework.Eventually(t, name+" has its certificate", func() (err error) {
			w.initial[i], err = issued(t, besideNamespace, name, 1)
			return err
		})

		d := deployment(name)
		d.Spec.Template.Spec.Volumes = []corev1.Volume{{Name: "tls", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: name}}}}
		cluster.Apply(t, d)
		w.apps = append(w.apps, d)
		r := restart(d)
		// The short minimum interval makes each renewal restart the workload, even shortly after
		// the previous renewal.
		r.Spec.OnConfigChange, r.Spec.MinIntervalSeconds = tidekeeperv1.ConfigMapsAndSecrets, 1
		cluster.Apply(t, r)
		w.restarts = append(w.restarts, r)
	}
	w.clock = deployment("clock")
	cluster.Apply(t, w.clock)
	w.everyMinute = restart(w.clock)
	w.everyMinute.Spec.Schedule = "* * * * *"
	cluster.Apply(t, w.everyMinute)

	// Because of the disruption budget, the descheduler needs several rounds per Deployment.
	one := intstr.FromInt32(1)
	cluster.Apply(t, &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Name: "web-0", Namespace: besideNamespace},
		Spec:       policyv1.PodDisruptionBudgetSpec{MaxUnavailable: &one, Selector: w.apps[0].Spec.Selector},
	})
	for _, r := range w.restarts {
		w.eventuallyRestarted(t, r, "knows the content", func() error {
			if r.Status.ConfigHash == "" {
				return fmt.Errorf("it does not: %+v", r.Status)
			}
			return nil
		})
	}
	return w
}

func (w *besideWorld) eventuallyRestarted(t *testing.T, r *tidekeeperv1.ScheduledRestart, what string, check func() error) {
	t.Helper()
	framework.EventuallyWithin(t, 3*framework.Patience, r.Name+" "+what, func() error {
		cluster.Refresh(t, r)
		return check()
	})
}

// play edits all pools, renews a certificate and requests a restart of another Deployment, all at
// the same time, and waits until each change has taken effect.
func (w *besideWorld) play(t *testing.T, round int) {
	t.Helper()
	away := round % len(w.pools)
	for i, pool := range w.pools {
		cluster.Change(t, pool, func() {
			pool.Spec.Labels[besideRound] = tidekeeperv1.LabelValue(fmt.Sprint(round))
			pool.Spec.Taints = nil
			if i == away {
				pool.Spec.Taints = []tidekeeperv1.Taint{{Key: "beside", Value: "away", Effect: corev1.TaintEffectNoSchedule}}
			}
		})
	}
	renewed, requested := away, (away+1)%len(w.pools)
	cluster.Delete(t, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: w.apps[renewed].Name, Namespace: besideNamespace}})
	w.renewed[renewed]++
	cluster.RequestRestart(t, w.restarts[requested], time.Now())
	w.requested[requested]++

	framework.Eventually(t, "the certificate is renewed", func() error {
		_, err := issued(t, besideNamespace, w.apps[renewed].Name, w.initial[renewed]+int64(w.renewed[renewed]))
		return err
	})
	for i, r := range w.restarts {
		w.eventuallyRestarted(t, r, "has all records", func() error { return w.decided(t, r, i) })
	}
	for i, pool := range w.pools {
		var taints []string
		if i == away {
			taints = []string{besideTaint}
		}
		for _, node := range pool.Spec.Selector.MatchExpressions[0].Values {
			eventuallyNode(t, &cluster, string(node), besideRound, fmt.Sprint(round), taints...)
		}
	}
	for _, d := range append(slices.Clone(w.apps), w.clock) {
		framework.EventuallyWithin(t, 3*framework.Patience, d.Name+" runs where it may", func() error {
			pods := on(t, &cluster, d)
			for _, node := range w.pools[away].Spec.Selector.MatchExpressions[0].Values {
				if slices.Contains(slices.Collect(maps.Values(pods)), string(node)) {
					return fmt.Errorf("a pod is on %s", node)
				}
			}
			if len(pods) < int(*d.Spec.Replicas) {
				return fmt.Errorf("%d pods are ready", len(pods))
			}
			return nil
		})
	}
}

// decided returns nil if the history has exactly one record for each configuration change and each
// request so far. Two certificates that are issued within the settle time count as one change.
func (w *besideWorld) decided(t *testing.T, r *tidekeeperv1.ScheduledRestart, i int) error {
	t.Helper()
	most := int(revisionOf(t, besideNamespace, w.apps[i].Name) - w.initial[i])
	var changes, requests int
	for _, record := range r.Status.History {
		switch record.Trigger {
		case tidekeeperv1.TriggerChange:
			changes++
		case tidekeeperv1.TriggerRequest:
			requests++
		default:
			return fmt.Errorf("a record of %s", record.Trigger)
		}
	}
	if r.Status.Active != nil || changes < w.renewed[i] || changes > most || requests != w.requested[i] {
		return fmt.Errorf("of %d to %d changes and %d requests there are %d and %d records, and active is %+v", w.renewed[i], most, w.requested[i], changes, requests, r.Status.Active)
	}
	return nil
}

// assertRestarts compares the histories with the number of ReplicaSets: the initial one, and one
// per restart.
func (w *besideWorld) assertRestarts(t *testing.T) {
	t.Helper()
	anyTime := func(time.Time) bool { return true }
	onTheMinute := func(tick time.Time) bool { return tick.Second() == 0 }
	for i, d := range append(slices.Clone(w.apps), w.clock) {
		r, isTick := w.everyMinute, onTheMinute
		if d != w.clock {
			r, isTick = w.restarts[i], anyTime
			if err := w.decided(t, r, i); err != nil {
				t.Errorf("%s: %v", r.Name, err)
			}
		}
		cluster.Refresh(t, r)
		started := 0
		for _, record := range r.Status.History {
			if record.Outcome == tidekeeperv1.OutcomeSucceeded {
				started++
			}
		}
		restartedAt := cluster.RestartedAt(t, d)
		if problems := framework.OnceEach(isTick, r.Status.History, restartedAt); len(problems) > 0 {
			t.Errorf("%s:\n%s", r.Name, strings.Join(problems, "\n"))
		}
		if len(restartedAt) != started {
			t.Errorf("%s: %d ReplicaSets are of restarts, and the history has %d", r.Name, len(restartedAt), started)
		}
		if d != w.clock && started < w.requested[i] {
			t.Errorf("%s: %d restarts were requested and %d succeeded", r.Name, w.requested[i], started)
		}
	}
}
