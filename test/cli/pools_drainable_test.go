// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/drain"
	"tidekeeper.dev/tidekeeper/internal/view"
	"tidekeeper.dev/tidekeeper/test/framework"
)

// askDrainable creates a pool of the nodes with a label, which asks whether they can be drained.
func askDrainable(t *testing.T, name, label string) {
	t.Helper()
	pool := framework.Pool(name)
	pool.Spec.Selector = &tidekeeperv1.NodeSelector{MatchLabels: map[string]tidekeeperv1.LabelValue{label: "true"}}
	pool.Spec.Drainable = &tidekeeperv1.Drainable{}
	cluster.Apply(t, pool)
}

// assertDrainableAgrees waits until a pool's metrics count the pods and nodes that pools blockers
// names, except for volumes, and checks that its condition is False.
func assertDrainableAgrees(t *testing.T, manager *framework.Manager, pool string) {
	t.Helper()
	framework.EventuallyWithin(t, 2*framework.Patience, "the metrics of "+pool+" agree with pools blockers", func() error {
		shown := command{args: []string{"pools", "blockers", pool, "-o=json"}}.run(t)
		var nodes []view.NodeBlockers
		if err := json.Unmarshal([]byte(shown.stdout), &nodes); err != nil {
			t.Fatalf("%v: %s %s", err, shown.stdout, shown.stderr)
		}
		named, counted := map[string]int{}, map[string]int{}
		blocked := 0
		for _, node := range nodes {
			node.Blockers = slices.DeleteFunc(node.Blockers, func(b drain.Blocker) bool { return b.Reason == drain.LocalVolume })
			if len(node.Blockers) > 0 {
				blocked++
			}
			for _, b := range node.Blockers {
				named[string(b.Reason)] += b.Count
			}
		}
		metrics := manager.ReadMetrics(t)
		for _, reason := range drain.Surveyed {
			count, known := metrics.Value("tidekeeper_nodepool_drain_blockers", map[string]string{"pool": pool, "reason": string(reason)})
			if !known {
				return fmt.Errorf("there is no metric for %s", reason)
			}
			if count > 0 {
				counted[string(reason)] = int(count)
			}
		}
		nodesBlocked, _ := metrics.Value("tidekeeper_nodepool_drain_blocked_nodes", map[string]string{"pool": pool})
		unknown, _ := metrics.Value("tidekeeper_nodepool_drain_blockers", map[string]string{"pool": pool, "reason": "NotEvaluated"})
		return errors.Join(diff(named, counted), diff([]int{blocked, 0}, []int{int(nodesBlocked), int(unknown)}))
	})
	p := framework.Pool(pool)
	framework.Eventually(t, "the condition is False", func() error {
		cluster.Refresh(t, p)
		c := meta.FindStatusCondition(p.Status.Conditions, "Drainable")
		if c == nil || c.Reason != "PodsStay" || !strings.Contains(c.Message, "of 2 nodes") {
			return fmt.Errorf("it is %+v", c)
		}
		return nil
	})
	if got := (command{args: []string{"pools", "describe", pool}}).run(t); !strings.Contains(got.stdout, "Drainable:   PodsStay, ") {
		t.Errorf("pools describe shows\n%s", got.stdout)
	}
}
