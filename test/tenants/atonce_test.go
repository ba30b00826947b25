// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package tenants

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/test/framework"
)

// herdNode is the capacity of each node for the tenant's pods. When all tricks run at the same
// time, a node gets more pods with host ports than the default maximum number of pods allows.
const herdNode = "cpu=64,memory=256Gi,ephemeral-storage=400Gi,pods=1000"

// aboutThePlugin lists the tricks that affect only the kubectl plugin, not the manager.
var aboutThePlugin = []string{"a calendar of millions"}

// TestTricksAtOnce runs all of the tenant's tricks at the same time, in several rounds, in a
// cluster of the size SIZE. The manager's memory is limited like a container's. The manager must
// neither exit nor be killed, and must serve the neighbouring tenant meanwhile, with the same
// limits on turns and requests as during a single trick. The rows in the log are the source of
// "Hostile tenants" in test/attacks.md.
func TestTricksAtOnce(t *testing.T) {
	if os.Getenv("DURATION") == "" {
		t.Skip("a benchmark: make bench-tenants")
	}
	duration, err := time.ParseDuration(os.Getenv("DURATION"))
	if err != nil {
		t.Fatalf("DURATION: %v", err)
	}
	w, known := worlds[cmp.Or(os.Getenv("SIZE"), "small")]
	if !known {
		t.Fatalf("SIZE=%s: must be one of %q", os.Getenv("SIZE"), slices.Sorted(maps.Keys(worlds)))
	}
	limit := limitMemory(t)
	w.build(t)
	cluster = *cluster.WithManager(limit.command)
	cluster.AddNodes(t, "herd", 100, "--allocatable="+herdNode)
	s := setStage(t)
	s.page = quietPage(t)
	w.settle(t)
	awaitPods(t, s.aged)
	s.served(t)
	s.largestObjects(t)
	begun := time.Now()
	m := &measured{stage: s, limit: limit, since: begun}
	m.report(t, "at rest")
	for round := 1; time.Since(begun) < duration; round++ {
		name := fmt.Sprint("round ", round)
		t.Run(name, s.playAll)
		m.report(t, name)
		if s.manager.AssertSound(t); limit.kills(t) > 0 {
			t.Fatalf("the manager was killed, as it used more than %d MiB", limit.mib)
		}
		s.sweep(t)
	}
	t.Logf("played for %s", time.Since(begun).Round(time.Second))
}

// quietPage returns a fake dashboard page that always has a new forecast. The real dashboard would
// take CPU time and API server capacity from the manager, and its memory is not limited in this
// test.
func quietPage(t *testing.T) *page {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if err := json.NewEncoder(w).Encode(map[string]time.Time{"From": time.Now()}); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(server.Close)
	return &page{base: server.URL}
}

// playAll runs all tricks at the same time. The objects of each trick stay until all other tricks
// have run and the neighbouring tenant has been served meanwhile.
func (s *stage) playAll(t *testing.T) {
	var playing sync.WaitGroup
	played, over := make(chan struct{}), make(chan struct{})
	for _, trick := range s.separately() {
		playing.Add(1)
		t.Run(trick.name, func(t *testing.T) {
			t.Parallel()
			defer func() {
				playing.Done()
				<-over
			}()
			trick.play(t)
		})
	}
	t.Run("the neighbour is served", func(t *testing.T) {
		t.Parallel()
		defer close(over)
		go func() {
			playing.Wait()
			close(played)
		}()
		for {
			select {
			case <-played:
				s.served(t)
				return
			default:
				s.served(t)
			}
		}
	})
}

// separately returns the tricks that affect the manager. Each trick has its own copy of the stage,
// so that concurrent tricks do not share the map stage.swollen.
func (s *stage) separately() (all []trick) {
	for i, of := range s.tricks() {
		if slices.Contains(aboutThePlugin, of.name) {
			continue
		}
		own := *s
		own.swollen = map[string]int{}
		all = append(all, own.tricks()[i])
	}
	return all
}

// sweep removes the objects that the tricks have left behind, so that the tricks can run again.
func (s *stage) sweep(t *testing.T) {
	t.Helper()
	ctx := t.Context()
	for _, namespace := range evil {
		restarts := &tidekeeperv1.ScheduledRestartList{}
		if err := cluster.List(ctx, restarts, client.InNamespace(namespace)); err != nil {
			t.Fatal(err)
		}
		for i := range restarts.Items {
			s.removes(t, &restarts.Items[i])
		}
		for _, kind := range []client.Object{&appsv1.Deployment{}, &appsv1.ReplicaSet{}, &corev1.Pod{}} {
			if err := cluster.DeleteAllOf(ctx, kind, client.InNamespace(namespace), client.GracePeriodSeconds(0)); err != nil {
				t.Fatal(err)
			}
		}
		for _, resource := range []string{"squads.example.com", "rollouts.argoproj.io"} {
			if out, err := cluster.Kubectl("", "delete", resource, "--all", "-n", namespace); err != nil && !strings.Contains(out, "the server doesn't have a resource type") {
				t.Fatal(err)
			}
		}
		framework.EventuallyWithin(t, patience, "nothing is left in "+namespace, func() error {
			for _, list := range []client.ObjectList{&tidekeeperv1.ScheduledRestartList{}, &appsv1.DeploymentList{}, &corev1.PodList{}} {
				if err := cluster.List(ctx, list, client.InNamespace(namespace), client.Limit(1)); err != nil {
					return err
				}
				if n := lenOf(list); n > 0 {
					return fmt.Errorf("there is a %T", list)
				}
			}
			return nil
		})
	}
}

// lenOf returns the number of objects in a list.
func lenOf(list client.ObjectList) int {
	switch l := list.(type) {
	case *tidekeeperv1.ScheduledRestartList:
		return len(l.Items)
	case *appsv1.DeploymentList:
		return len(l.Items)
	case *corev1.PodList:
		return len(l.Items)
	}
	return 0
}

// measured measures the manager and the neighbouring tenant during a round of tricks.
type measured struct {
	*stage
	limit limit
	// since is the start of the round.
	since time.Time
	// reconciled is the manager's reconcile count at the start of the round.
	reconciled float64
}

// report logs a row with the measurements since the last row. `of` describes the row.
func (m *measured) report(t *testing.T, of string) {
	t.Helper()
	m.mu.Lock()
	defer m.mu.Unlock()
	resident, most := framework.ResidentMiB(t, m.manager.Pid())
	metrics := m.manager.ReadMetrics(t)
	reconciled := metrics.Sum("controller_runtime_reconcile_total")
	m.requests = append(m.requests, m.audit.Requests(t)...)
	ofTenants, all := 0, 0
	for _, q := range m.requests {
		if q.Received.After(m.since) {
			all++
			if slices.Contains(evil, q.Namespace) {
				ofTenants++
			}
		}
	}
	deferred := 0.0
	for _, namespace := range evil {
		deferred += metrics.SumOf("tidekeeper_namespace_deferred_reconciles", "namespace", namespace)
	}
	t.Logf("%s, %s: resident %.0f MiB, at most %.0f MiB, charged at most %d MiB of %d; %.0f reconciles, of which %.0f were deferred in the last minutes; %d requests, of which %d for tenants; neighbour: %s",
		of, time.Since(m.since).Round(time.Second), resident, most, m.limit.charged(t), m.limit.mib, reconciled-m.reconciled, deferred, all, ofTenants, m.neighbourWaited(t))
	// Old requests are dropped because keeping an hour of requests would slow this process down.
	since := m.since.Add(-2 * time.Minute)
	m.requests = slices.DeleteFunc(m.requests, func(q framework.Request) bool { return q.Received.Before(since) })
	m.since, m.reconciled = time.Now(), reconciled
}

// neighbourWaited reports the number of the neighbour's restarts since the start of the round, and
// the longest time that one of them had to wait.
func (m *measured) neighbourWaited(t *testing.T) string {
	t.Helper()
	var most wait
	restarts, late := 0, 0
	for _, r := range []*tidekeeperv1.ScheduledRestart{m.web, m.api} {
		cluster.Refresh(t, r)
		for _, record := range r.Status.History {
			due := record.ScheduledTime.Add(-time.Duration(record.EarlierTicks) * time.Minute)
			if due.Before(m.since) {
				continue
			}
			if record.Outcome != tidekeeperv1.OutcomeSucceeded {
				late++
				continue
			}
			w := m.waited(t, r, due)
			restarts++
			most.turns, most.requests = max(most.turns, w.turns), max(most.requests, w.requests)
		}
	}
	return fmt.Sprintf("%d restarts, %d ticks without one of their own, at most %s before one", restarts, late, most)
}
