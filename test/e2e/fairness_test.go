// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/test/framework"
)

// greed is how many ScheduledRestarts the greedy namespace has, and fairWorkers how many workers
// the manager.
const greed, fairWorkers = 200, 4

// greedy creates a namespace with that many ScheduledRestarts that all have something due at once,
// and a namespace after it, in the order of the alphabet, with one. It returns both, and the one.
func greedy(t *testing.T, name string, of func(string) *tidekeeperv1.ScheduledRestart) (many, one string, modest *tidekeeperv1.ScheduledRestart) {
	t.Helper()
	many, one = name+"-greedy", name+"-modest"
	for _, namespace := range []string{many, one} {
		cluster.Apply(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})
	}
	due := func(r *tidekeeperv1.ScheduledRestart, namespace string) *tidekeeperv1.ScheduledRestart {
		r.Namespace, r.Spec.Precondition, r.Spec.StartingDeadlineSeconds = namespace, tidekeeperv1.PreconditionNone, 86400
		metav1.SetMetaDataAnnotation(&r.ObjectMeta, tidekeeperv1.RestartNowAnnotation, time.Now().UTC().Format(time.RFC3339))
		cluster.Apply(t, r)
		return r
	}
	for i := range greed {
		due(of(fmt.Sprintf("greedy-%03d", i)), many)
	}
	d := deployment("modest", 1, app)
	d.Namespace = one
	cluster.Apply(t, d)
	return many, one, due(restartOf("Deployment", "modest"), one)
}

// eventuallyDecided waits until something was decided about each ScheduledRestart of a namespace.
func eventuallyDecided(t *testing.T, namespace string) {
	t.Helper()
	framework.EventuallyWithin(t, 2*framework.Patience, "all in "+namespace+" have a condition", func() error {
		list := &tidekeeperv1.ScheduledRestartList{}
		if err := cluster.List(t.Context(), list, client.InNamespace(namespace)); err != nil {
			return err
		}
		for i := range list.Items {
			if ready := meta.FindStatusCondition(list.Items[i].Status.Conditions, tidekeeperv1.ConditionReady); ready == nil || len(list.Items) != greed {
				return fmt.Errorf("%s has none, of %d", list.Items[i].Name, len(list.Items))
			}
		}
		return nil
	})
}

// isRestart reports whether a request restarts a Deployment of a namespace.
func isRestart(namespace string) func(framework.Request) bool {
	return func(r framework.Request) bool {
		return r.Verb == "patch" && r.Resource == "deployments" && r.Subresource == "" && r.Namespace == namespace
	}
}

// inNamespace returns those of the requests that are about a namespace.
func inNamespace(requests []framework.Request, namespace string) (of []framework.Request) {
	for _, r := range requests {
		if r.Namespace == namespace {
			of = append(of, r)
		}
	}
	return of
}

// The restart of a namespace waits for a few requests of another one, although hundreds of objects
// there have something due at the same time and come first.
func TestNamespacesTakeTurns(t *testing.T) {
	many, one, modest := greedy(t, "turns", func(name string) *tidekeeperv1.ScheduledRestart { return restartOf("Deployment", name) })
	audit := cluster.Audit(t, "tidekeeper/")
	cluster.StartManager(t, fmt.Sprint("--restart-concurrency=", fairWorkers))
	eventuallyDecided(t, many)
	eventuallyRestart(t, modest, framework.Patience, "is restarted", func() error {
		if modest.Status.Active == nil && len(modest.Status.History) == 0 {
			return fmt.Errorf("not yet: %v", modest.Status.Conditions)
		}
		return nil
	})
	var requests []framework.Request
	framework.Eventually(t, "the restart was sent", func() error {
		if requests = append(requests, audit.Requests(t)...); !slices.ContainsFunc(requests, isRestart(one)) {
			return fmt.Errorf("it is not among %d requests", len(requests))
		}
		return nil
	})
	before := len(inNamespace(requests[:slices.IndexFunc(requests, isRestart(one))], many))
	all := len(inNamespace(requests, many))
	t.Logf("the restart was sent after %d of the %d requests for the greedy namespace", before, all)
	// The restart takes a few turns: to claim it, to send it, and where a write has to be repeated.
	if most := 10 * fairWorkers; before > most || all < greed {
		t.Errorf("the restart was sent after %d of the %d requests for the greedy namespace, want at most %d of at least %d", before, all, most, greed)
	}
}

// A namespace that has used up its requests to the API server waits for the clock, here for those
// of targets that are read by their scale, and others do not wait. The metrics say which it is.
func TestRequestsOfANamespace(t *testing.T) {
	const perSecond, burst = 2, 100
	installSquads(t)
	many, one, modest := greedy(t, "requests", func(name string) *tidekeeperv1.ScheduledRestart { return ofSquad(evictionOf("Squad", name)) })
	allowSquads(t, many)
	audit := cluster.Audit(t, "tidekeeper/")
	launched := time.Now()
	manager := cluster.StartManager(t, fmt.Sprint("--restart-concurrency=", fairWorkers),
		fmt.Sprint("--namespace-requests-per-second=", perSecond), fmt.Sprint("--namespace-requests-burst=", burst))
	eventuallyRestart(t, modest, framework.Patience, "is restarted", func() error {
		if modest.Status.Active == nil && len(modest.Status.History) == 0 {
			return fmt.Errorf("not yet: %v", modest.Status.Conditions)
		}
		return nil
	})
	var metrics framework.Metrics
	framework.Eventually(t, "reconciles of the greedy namespace are put off", func() error {
		if metrics = manager.ReadMetrics(t); metrics.SumOf("tidekeeper_namespace_deferred_reconciles", "namespace", many) == 0 {
			return fmt.Errorf("after %g requests none was", metrics.SumOf("tidekeeper_namespace_requests", "namespace", many))
		}
		return nil
	})
	if requests := metrics.SumOf("tidekeeper_namespace_requests", "namespace", many); requests < burst {
		t.Errorf("by the metric, the greedy namespace has caused %g requests, want at least %d", requests, burst)
	}
	if deferred := metrics.SumOf("tidekeeper_namespace_deferred_reconciles", "namespace", one); deferred > 0 {
		t.Errorf("%g reconciles of the modest namespace were put off", deferred)
	}
	var requests []framework.Request
	framework.Eventually(t, "the clock gives requests back", func() error {
		requests = append(requests, audit.Requests(t)...)
		if n := len(inNamespace(requests, many)); n < burst+5*perSecond {
			return fmt.Errorf("the greedy namespace has caused %d", n)
		}
		return nil
	})
	// Each worker may be in the middle of a reconcile when the requests are used up.
	for i, r := range inNamespace(requests, many) {
		if most := burst + 10*fairWorkers + perSecond*r.Received.Sub(launched).Seconds(); float64(i+1) > most {
			t.Fatalf("the greedy namespace has caused %d requests in %s, want at most %.0f", i+1, r.Received.Sub(launched), most)
		}
	}
	reads := slices.ContainsFunc(requests, func(r framework.Request) bool {
		return r.Namespace == many && r.Resource == "squads" && r.Subresource == "scale"
	})
	if !reads {
		t.Error("no scale was read")
	}
}
