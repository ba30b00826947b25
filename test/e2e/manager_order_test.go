// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/manager"
	"tidekeeper.dev/tidekeeper/test/framework"
)

// withWorkers returns the logged names of the controllers that have workers with
// --controllers=*,pod-count. These are all defined controllers and nodepool's other two controllers,
// but not pod-startup, which does its work in an event handler.
func withWorkers() []string {
	names := []string{"nodepool-node", "nodepool-emptying"}
	for _, c := range manager.NewOptions().Definitions() {
		if (!c.OffByDefault || c.Name == "pod-count") && c.Name != "pod-startup" {
			names = append(names, c.Name)
		}
	}
	slices.Sort(names)
	return names
}

// TestManager_ControllersStartAndStopInOrder checks that a single manager runs all controllers that
// a flag selects. The workers must start after all caches are synced, and at shutdown they must
// finish before the caches stop.
func TestManager_ControllersStartAndStopInOrder(t *testing.T) {
	addMembers(t, "s22", 1)
	cluster.Apply(t, pool("s22"))
	audit := cluster.Audit(t, "tidekeeper/")
	proxy := cluster.StartProxy(t, `rules: [{name: late, match: {verbs: [list, watch], resources: [daemonsets.apps]}, fault: {kind: Delay}}]`)
	manager := cluster.LaunchManager(t, "--controllers=*,pod-count", "--kubeconfig", proxy.Kubeconfig)
	proxy.AwaitFired(t, "late", 1)
	// For each readiness probe, the manager logs the name of some cache that is not synced. If the
	// same name is logged this many times in a row, it is assumed to be the only unsynced cache.
	const answers = 20
	framework.Eventually(t, "only the cache of DaemonSets is not filled", func() error {
		_ = manager.Ready()
		var named []string
		for line := range strings.Lines(manager.Log()) {
			if _, cache, ok := strings.Cut(line, `error="the cache of `); ok {
				named = append(named, strings.Fields(cache)[0])
			}
		}
		last := named[max(0, len(named)-answers):]
		return diff(slices.Repeat([]string{"DaemonSet.apps"}, answers), last)
	})
	if started := loggedBy(manager.Log(), "Starting workers"); len(started) > 0 {
		t.Errorf("the workers of %v start before all caches are filled", started)
	}
	for _, request := range audit.Requests(t) {
		if request.Writes() && request.Resource != "selfsubjectaccessreviews" {
			t.Errorf("written before all caches are filled: %s", request)
		}
	}
	proxy.Remove(t, "late")
	manager.AwaitReady(t)
	healthyWith(t, "s22", 1)
	framework.Eventually(t, "all controllers have started", func() error { return diff(withWorkers(), loggedBy(manager.Log(), "Starting workers")) })

	manager.Stop(t) // Stop also checks that the exit code is 0.
	workers, caches, stopped := strings.Cut(manager.Log(), "Stopping and waiting for caches")
	if !stopped || strings.Contains(caches, "All workers finished") {
		t.Errorf("the caches stop before the workers have finished, or do not stop:\n%s", manager.Log())
	}
	if err := diff(withWorkers(), loggedBy(workers, "All workers finished")); err != nil {
		t.Errorf("before the caches stop, the workers that have finished are %v", err)
	}

	for _, flag := range []string{"--controllers=nodepool,nonsense", "--controllers=-nodepool"} {
		if got := framework.Run(t, flag); got.Wait(t) != 1 || !strings.HasPrefix(got.Log(), "Error: --controllers=") || strings.Count(got.Log(), "\n") != 1 {
			t.Errorf("%s: got %q, want one line that begins with Error: --controllers=", flag, got.Log())
		}
	}
}

// loggedBy returns the sorted names of the controllers that have logged the given message.
func loggedBy(log, message string) []string {
	var by []string
	for line := range strings.Lines(log) {
		if _, rest, ok := strings.Cut(line, ` msg="`+message+`" controller=`); ok {
			by = append(by, strings.Fields(rest)[0])
		}
	}
	slices.Sort(by)
	return by
}

// TestManager_OnlyChosenControllersWork checks that controllers that are not selected neither watch
// nor write objects. It selects each controller alone, while there is work for all of them.
func TestManager_OnlyChosenControllersWork(t *testing.T) {
	cluster.AddNodes(t, "s22i-work", 1)
	d := workload(t, "Deployment", "s22i")
	cluster.Change(t, d, func() { d.SetAnnotations(map[string]string{tidekeeperv1.OptInAnnotation: "true"}) })
	workload(t, "Deployment", "s22i-restart")
	r := restartOf("Deployment", "s22i-restart")
	cluster.Apply(t, r)
	request(t, r)
	addMembers(t, "s22i", 1)
	p := pool("s22i")
	p.Spec.Handler = "runc"
	cluster.Apply(t, p)

	workloads := []string{"customresourcedefinitions", "daemonsets", "deployments", "scheduledrestarts", "statefulsets"}
	for _, tt := range []struct {
		controller       string
		watches, written []string
	}{
		{"pod-startup", []string{"nodepools", "nodes", "pods"}, nil},
		{"pod-count", []string{"pods", "replicasets"}, []string{"replicasets"}},
		{"restart-opt-in", workloads, []string{"scheduledrestarts"}},
		{"scheduled-restart", workloads, []string{"deployments", "scheduledrestarts", "scheduledrestarts/status"}},
		{"nodepool", []string{"nodepools", "nodes", "poddisruptionbudgets", "pods", "runtimeclasses"}, []string{"nodepools", "nodepools/status", "nodes", "runtimeclasses"}},
	} {
		t.Run(tt.controller, func(t *testing.T) {
			audit := cluster.Audit(t, "tidekeeper/")
			manager := cluster.StartManager(t, "--controllers="+tt.controller)
			watched, written := map[string]bool{}, map[string]bool{}
			check := func() error {
				for _, request := range audit.Requests(t) {
					name := request.Resource
					if request.Subresource != "" {
						name += "/" + request.Subresource
					}
					switch {
					case request.Verb == "watch":
						watched[name] = true
					case request.Writes() && name != "selfsubjectaccessreviews" && name != "events":
						written[name] = true
					}
				}
				return errors.Join(diff(tt.watches, slices.Sorted(maps.Keys(watched))), diff(tt.written, slices.Sorted(maps.Keys(written))))
			}
			framework.Eventually(t, "it watches and writes what it has to", check)
			if tt.written != nil {
				manager.AssertIdle(t)
			}
			if err := check(); err != nil {
				t.Errorf("when all is done, watches or writes %v", err)
			}
		})
	}
}
