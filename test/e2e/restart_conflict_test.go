// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
)

// TestRestart_ConflictsAreRetried checks that a write of the status or the workload that conflicts
// with another client's write changes nothing, and is repeated on the new version. It must also be
// repeated without a further event, for instance if the manager has already seen the other client's
// write.
func TestRestart_ConflictsAreRetried(t *testing.T) {
	audit := cluster.Audit(t, "tidekeeper/")
	proxy := cluster.StartProxy(t, "")
	cluster.StartManager(t, "--kubeconfig", proxy.Kubeconfig)
	cluster.AddNodes(t, "s48", 1)
	for name, resource := range conflicting {
		t.Run(name+" overtaken", func(t *testing.T) {
			d := workload(t, "Deployment", name).(*appsv1.Deployment)
			r := suspendedRestart(t, name)
			audit.Requests(t)
			proxy.Add(t, fmt.Sprintf("rules: [{name: %[2]s, match: {verbs: [patch], resources: [%[1]s], names: [%[2]s]}, count: {times: 1}, fault: {kind: Delay}}]", resource, name))
			tick := request(t, r)
			proxy.AwaitFired(t, name, 1)
			// While the manager's write is delayed, another client's write overtakes it.
			for _, o := range []client.Object{d, r} {
				if err := cluster.Patch(t.Context(), o, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"labels":{"example.com/theirs":"yes"}}}`))); err != nil {
					t.Fatal(err)
				}
			}
			proxy.Remove(t, name)
			eventuallyOutcome(t, r, tick, tidekeeperv1.OutcomeSucceeded, "")
			conflicts := 0
			for _, request := range audit.Requests(t) {
				if request.Code == 409 && request.Name == name {
					conflicts++
				}
			}
			cluster.Refresh(t, d)
			if conflicts == 0 || d.Labels["example.com/theirs"] != "yes" || r.Labels["example.com/theirs"] != "yes" || len(r.Status.History) != 1 {
				t.Errorf("%d conflicts, labels %v and %v, history %+v; want a conflict, both writes and one restart", conflicts, d.Labels, r.Labels, r.Status.History)
			}
		})
		t.Run(name+" without an event", func(t *testing.T) {
			name := name + "-alone"
			workload(t, "Deployment", name)
			r := suspendedRestart(t, name)
			// Once the manager has seen these later objects, it has seen all events of the earlier
			// objects.
			workload(t, "Deployment", name+"-later")
			suspendedRestart(t, name+"-later")
			// The manager receives the event with the restart request, but not the events of its
			// own writes.
			proxy.Add(t, fmt.Sprintf(`rules:
- {name: conflict, match: {verbs: [patch], resources: [%s], names: [%s]}, count: {times: 1}, fault: {kind: Error, code: 409, reason: Conflict}}
- {name: silent, match: {resources: [scheduledrestarts.tidekeeper.dev]}, events: {names: [%[2]s]}, count: {from: 2}, fault: {kind: Freeze}}`, resource, name))
			defer proxy.Clear(t)
			tick := request(t, r)
			proxy.AwaitFired(t, "conflict", 1)
			eventuallyOutcome(t, r, tick, tidekeeperv1.OutcomeSucceeded, "")
		})
	}
}

// conflicting maps the name of a test's objects to a resource that a restart writes with a
// resourceVersion.
var conflicting = map[string]string{"s48-status": "scheduledrestarts.tidekeeper.dev/status", "s48-workload": "deployments.apps"}
