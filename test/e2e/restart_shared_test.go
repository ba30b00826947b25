// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/test/framework"
)

// sharing is the number of workloads that share a ConfigMap; sharingBudget is the number of these
// workloads that may be restarted at the same time.
var sharing, sharingBudget = 24, 4

func init() {
	if framework.TestsAll() {
		sharing, sharingBudget = 72, 6
	}
}

func sharingName(i int) string { return fmt.Sprintf("shared-%03d", i) }

// TestConfigChangeKeepsTheBudget checks that a change of a ConfigMap that many workloads share
// restarts each workload once, within the restart budget, and with as few writes as a single
// restart.
func TestConfigChangeKeepsTheBudget(t *testing.T) {
	audit := cluster.Audit(t, "tidekeeper/")
	manager := cluster.StartManager(t, append(withConfig, fmt.Sprint("--max-concurrent-restarts=", sharingBudget), "--restart-namespace-share=100")...)
	cluster.AddNodes(t, "shared", 4)
	c := configMap(t, "shared", map[string]string{"a": "1"})
	spec := *app.DeepCopy()
	allOf("shared")(&spec)
	for i := range sharing {
		cluster.Apply(t, deployment(sharingName(i), 1, spec))
		r := restartOf("Deployment", sharingName(i))
		r.Spec.Suspend, r.Spec.OnConfigChange = false, tidekeeperv1.ConfigMapsOnly
		cluster.Apply(t, r)
	}
	eachSharing(t, "knows the content", func(r *tidekeeperv1.ScheduledRestart) error {
		if r.Status.ConfigHash == "" {
			return errors.New("not yet")
		}
		return nil
	})
	rolling := followRollouts(t)
	framework.EventuallyWithin(t, 2*framework.Patience, "all are rolled out", func() error { return rolling.none() })
	manager.AssertIdle(t)
	rolling.reset()
	audit.Requests(t)

	setKey(t, c, "a", "2")
	eachSharing(t, "is restarted", func(r *tidekeeperv1.ScheduledRestart) error {
		if len(r.Status.History) == 0 {
			return fmt.Errorf("not yet: %v", r.Status.Conditions)
		}
		return nil
	})
	manager.AssertIdle(t)

	if most := rolling.mostAtOnce(); most > sharingBudget || most == 0 {
		t.Errorf("%d were rolling out at the same time, and at most %d may be", most, sharingBudget)
	}
	eachSharing(t, "is restarted once", func(r *tidekeeperv1.ScheduledRestart) error {
		if h := r.Status.History; len(h) != 1 || h[0].Outcome != tidekeeperv1.OutcomeSucceeded || h[0].Trigger != tidekeeperv1.TriggerChange {
			t.Errorf("%s: the history is %+v", r.Name, h)
		}
		return nil
	})
	templates := map[string]int{}
	sets := &appsv1.ReplicaSetList{}
	if err := cluster.List(t.Context(), sets, client.InNamespace(metav1.NamespaceDefault)); err != nil {
		t.Fatal(err)
	}
	for _, set := range sets.Items {
		templates[set.Labels["app"]]++
	}
	writes := map[string][]string{}
	for _, request := range audit.Requests(t) {
		if name, _, _ := strings.Cut(request.Name, "."); request.Writes() && request.Code < 300 && strings.HasPrefix(name, "shared-") {
			writes[name] = append(writes[name], request.String())
		}
	}
	for i := range sharing {
		name := sharingName(i)
		if templates[name] != 2 {
			t.Errorf("%s: there are %d ReplicaSets, want one for each of two templates", name, templates[name])
		}
		// A restart takes four writes, and a fifth if it has to report that it waits for the
		// budget.
		if got := len(writes[name]); got < 4 || got > 5 {
			t.Errorf("%s cost %d writes: %q", name, got, writes[name])
		}
	}
}

// eachSharing waits until the check accepts each ScheduledRestart of the workloads that share the
// ConfigMap.
func eachSharing(t *testing.T, what string, check func(*tidekeeperv1.ScheduledRestart) error) {
	t.Helper()
	framework.EventuallyWithin(t, 10*framework.Patience, "each that shares the ConfigMap "+what, func() error {
		list := &tidekeeperv1.ScheduledRestartList{}
		if err := cluster.List(t.Context(), list, client.InNamespace(metav1.NamespaceDefault)); err != nil {
			return err
		}
		seen := 0
		for i := range list.Items {
			if !strings.HasPrefix(list.Items[i].Name, "shared-") {
				continue
			}
			seen++
			if err := check(&list.Items[i]); err != nil {
				return fmt.Errorf("%s: %w", list.Items[i].Name, err)
			}
		}
		if seen != sharing {
			return fmt.Errorf("there are %d", seen)
		}
		return nil
	})
}

// rollouts tracks which of the Deployments that share the ConfigMap are being rolled out, in each
// version that the API server has stored.
type rollouts struct {
	mu sync.Mutex
	// seen is the set of Deployments with at least one event so far; now is the set of Deployments
	// that are being rolled out.
	seen, now map[string]bool
	most      int
}

// followRollouts tracks the Deployments' rollouts until the test ends.
func followRollouts(t *testing.T) *rollouts {
	t.Helper()
	watcher, err := client.NewWithWatch(cluster.Config, client.Options{Scheme: cluster.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	stream, err := watcher.Watch(ctx, &appsv1.DeploymentList{}, client.InNamespace(metav1.NamespaceDefault))
	if err != nil {
		t.Fatal(err)
	}
	r := &rollouts{seen: map[string]bool{}, now: map[string]bool{}}
	var done sync.WaitGroup
	done.Go(func() {
		for event := range stream.ResultChan() {
			if d, ok := event.Object.(*appsv1.Deployment); ok && strings.HasPrefix(d.Name, "shared-") {
				r.saw(d, event.Type == watch.Deleted)
			}
		}
	})
	t.Cleanup(func() {
		cancel()
		done.Wait()
	})
	return r
}

func (r *rollouts) saw(d *appsv1.Deployment, deleted bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := &d.Status
	complete := s.ObservedGeneration == d.Generation && s.UpdatedReplicas == 1 && s.Replicas == 1 && s.AvailableReplicas == 1
	r.seen[d.Name] = true
	if r.now[d.Name] = true; complete || deleted {
		delete(r.now, d.Name)
	}
	r.most = max(r.most, len(r.now))
}

// none returns an error while a Deployment is being rolled out or has had no event yet.
func (r *rollouts) none() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.now) > 0 || len(r.seen) < sharing {
		return fmt.Errorf("%d of %d were seen, and %d are being rolled out", len(r.seen), sharing, len(r.now))
	}
	return nil
}

func (r *rollouts) reset() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.most = 0
}

// mostAtOnce returns the largest number of simultaneous rollouts since the last reset.
func (r *rollouts) mostAtOnce() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.most
}
