// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/test/framework"
)

// greed is the number of ScheduledRestarts in the greedy namespace; fairWorkers is the manager's
// number of workers.
const greed, fairWorkers = 200, 4

// greedy creates a namespace with `greed` ScheduledRestarts that are all due immediately, and a
// second namespace, later in the alphabet, with a single ScheduledRestart. It returns both names
// and the single ScheduledRestart.
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

// eventuallyBegins waits until a restart is in progress or has finished.
func eventuallyBegins(t *testing.T, r *tidekeeperv1.ScheduledRestart) {
	t.Helper()
	eventuallyRestart(t, r, framework.Patience, "is restarted", func() error {
		if r.Status.Active == nil && len(r.Status.History) == 0 {
			return fmt.Errorf("not yet: %v", r.Status.Conditions)
		}
		return nil
	})
}

// isPaused reports whether a restart waits because its workload is paused.
func isPaused(r *tidekeeperv1.ScheduledRestart) bool {
	ready := meta.FindStatusCondition(r.Status.Conditions, tidekeeperv1.ConditionReady)
	return ready != nil && ready.Reason == tidekeeperv1.ReasonTargetPaused
}

// eventuallyAll waits until the check accepts each of the `n` ScheduledRestarts in a namespace.
func eventuallyAll(t *testing.T, namespace string, n int, what string, check func(*tidekeeperv1.ScheduledRestart) bool) {
	t.Helper()
	framework.EventuallyWithin(t, 2*framework.Patience, "all in "+namespace+" "+what, func() error {
		list := &tidekeeperv1.ScheduledRestartList{}
		if err := cluster.List(t.Context(), list, client.InNamespace(namespace)); err != nil {
			return err
		}
		for i := range list.Items {
			if r := &list.Items[i]; !check(r) || len(list.Items) != n {
				return fmt.Errorf("%s does not, of %d: %+v", r.Name, len(list.Items), r.Status.Conditions)
			}
		}
		return nil
	})
}

// isRestart returns a predicate for requests that restart a Deployment in the given namespace.
func isRestart(namespace string) func(framework.Request) bool {
	return func(r framework.Request) bool {
		return r.Verb == "patch" && r.Resource == "deployments" && r.Subresource == "" && r.Namespace == namespace
	}
}

// inNamespace returns the requests for objects in the given namespace.
func inNamespace(requests []framework.Request, namespace string) (of []framework.Request) {
	for _, r := range requests {
		if r.Namespace == namespace {
			of = append(of, r)
		}
	}
	return of
}

// TestNamespacesTakeTurns checks that a restart is sent after only a few requests for another
// namespace, although a single event there has just queued hundreds of ScheduledRestarts that share
// a workload.
func TestNamespacesTakeTurns(t *testing.T) {
	many, one, _ := greedy(t, "turns", func(name string) *tidekeeperv1.ScheduledRestart {
		r := restartOf("Deployment", name)
		r.Spec.TargetRef.Name = "crowded"
		return r
	})
	crowded, quiet := deployment("crowded", 1, app), deployment("modest", 1, app)
	crowded.Namespace, quiet.Namespace = many, one
	cluster.Apply(t, crowded)
	for _, d := range []*appsv1.Deployment{crowded, quiet} {
		cluster.Change(t, d, func() { d.Spec.Paused = true })
	}
	proxy := cluster.StartProxy(t, "")
	cluster.StartManager(t, "--kubeconfig", proxy.Kubeconfig, fmt.Sprint("--restart-concurrency=", fairWorkers))
	eventuallyAll(t, many, greed, "wait for their target", isPaused)
	eventuallyAll(t, one, 1, "wait for their target", isPaused)
	audit := cluster.Audit(t, "tidekeeper/")
	// The watch is frozen so that the manager sees both changes at the same time, regardless of how
	// long they take.
	proxy.Freeze(t, "match: {resources: [deployments.apps]}")
	cluster.Change(t, crowded, func() { crowded.Spec.Paused = false })
	cluster.Change(t, quiet, func() { quiet.Spec.Paused = false })
	asked := time.Now()
	proxy.Thaw(t)
	var since []framework.Request
	framework.Eventually(t, "the restarts were sent", func() error {
		for _, r := range audit.Requests(t) {
			if !r.Received.Before(asked) {
				since = append(since, r)
			}
		}
		if !slices.ContainsFunc(since, isRestart(one)) || !slices.ContainsFunc(since, isRestart(many)) {
			return fmt.Errorf("they are not among %d requests", len(since))
		}
		return nil
	})
	// All ScheduledRestarts of the greedy namespace share one Deployment: one restart is running,
	// and now the others wait for the Deployment's rollout.
	eventuallyAll(t, many, greed, "wait for their target no longer because it is paused", func(r *tidekeeperv1.ScheduledRestart) bool { return !isPaused(r) })
	since = append(since, audit.Requests(t)...)
	before := len(inNamespace(since[:slices.IndexFunc(since, isRestart(one))], many))
	all := len(inNamespace(since, many))
	t.Logf("the restart was sent after %d of the %d requests for the greedy namespace", before, all)
	// A restart needs a few reconciles: one to claim it, one to send it, and one for each write
	// that has to be retried.
	if most := 10 * fairWorkers; before > most || all < greed {
		t.Errorf("the restart was sent after %d of the %d requests for the greedy namespace, want at most %d of at least %d", before, all, most, greed)
	}
}

// TestRequestsOfANamespace checks that a namespace's reconciles are deferred once the namespace has
// used up its budget of API requests, while other namespaces are not delayed. The requests in this
// test read the targets' scale subresources. The metrics and a single event must name the
// namespace.
func TestRequestsOfANamespace(t *testing.T) {
	// These are the lowest values that the flags accept, so that the budget is used up on any
	// machine.
	const perSecond, burst = 1, 100
	installSquads(t)
	many, one, modest := greedy(t, "requests", func(name string) *tidekeeperv1.ScheduledRestart { return ofSquad(evictionOf("Squad", name)) })
	allowSquads(t, many)
	audit := cluster.Audit(t, "tidekeeper/")
	launched := time.Now()
	manager := cluster.StartManager(t, fmt.Sprint("--restart-concurrency=", fairWorkers),
		fmt.Sprint("--namespace-requests-per-second=", perSecond), fmt.Sprint("--namespace-requests-burst=", burst))
	eventuallyBegins(t, modest)
	var metrics framework.Metrics
	framework.EventuallyWithin(t, 3*framework.Patience, "reconciles of the greedy namespace are put off", func() error {
		if metrics = manager.ReadMetrics(t); metrics.SumOf("tidekeeper_namespace_deferred_reconciles", "namespace", many) == 0 {
			return fmt.Errorf("after %g requests none was", metrics.SumOf("tidekeeper_namespace_requests", "namespace", many))
		}
		return nil
	})
	if requests := metrics.SumOf("tidekeeper_namespace_requests", "namespace", many); requests < burst {
		t.Errorf("by the metric, the greedy namespace has caused %g requests, want at least %d", requests, burst)
	}
	if objects := metrics.SumOf("tidekeeper_namespace_cached_objects", "namespace", many); objects < greed {
		t.Errorf("by the metric, the greedy namespace has %g objects in the cache, want at least %d", objects, greed)
	}
	if deferred := metrics.SumOf("tidekeeper_namespace_deferred_reconciles", "namespace", one); deferred > 0 {
		t.Errorf("%g reconciles of the modest namespace were put off", deferred)
	}
	requests := audit.Requests(t)
	usedUp := len(inNamespace(requests, many))
	framework.Eventually(t, "the clock gives requests back", func() error {
		requests = append(requests, audit.Requests(t)...)
		if n := len(inNamespace(requests, many)); n < usedUp+5*perSecond {
			return fmt.Errorf("the greedy namespace has caused %d requests, %d until they were used up", n, usedUp)
		}
		return nil
	})
	// Each worker may be in the middle of a reconcile when the budget is used up.
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
	framework.Eventually(t, "an event says so", func() error { return diff([]string{many}, usedUpRequests(t, many, one)) })
}

// usedUpRequests returns the namespaces that have an event about their used-up budget of API
// requests.
func usedUpRequests(t *testing.T, namespaces ...string) (of []string) {
	t.Helper()
	for _, namespace := range namespaces {
		events := &eventsv1.EventList{}
		if err := cluster.List(t.Context(), events, client.InNamespace(namespace)); err != nil {
			t.Fatal(err)
		}
		for _, event := range events.Items {
			if event.Reason == tidekeeperv1.EventRequestsUsedUp && event.Regarding.Kind == "ScheduledRestart" {
				of = append(of, namespace)
			}
		}
	}
	return of
}
