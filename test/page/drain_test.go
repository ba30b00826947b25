// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	"tidekeeper.dev/tidekeeper/test/framework"
)

// namesBlockers checks that a node's panel lists the same number of pods that would not leave the
// node as kubectl tide pools blockers.
func namesBlockers(ctx context.Context, t *testing.T, d *dashboard) {
	kubectl(t, "", "create", "poddisruptionbudget", "full", "-n", "shop", "--selector=app=api", "--min-available=100%")
	defer kubectl(t, "", "delete", "poddisruptionbudget", "full", "-n", "shop")
	kubectl(t, "", "wait", "-n", "shop", "poddisruptionbudget/full", "--for=jsonpath={.status.expectedPods}=4", framework.LongTimeout)
	node := kubectl(t, "", "get", "pods", "-n", "shop", "-l", "app=api", "--field-selector=status.phase=Running", "-o", "jsonpath={.items[0].spec.nodeName}")
	open(ctx, t, d.base+"/pools/worker?node="+node)
	until(ctx, t, "the panel names the budget", `/shop\/Deployment\/api[^]*Budget[^]*never allows a disruption: 4 of 4 pods/.test(document.getElementById("panel")?.innerText)`)
	framework.Eventually(t, "the panel has as many rows as the command", func() error {
		var nodes []struct {
			Blockers []struct{ Reason string }
		}
		out := kubectlTide(t, "pools", "blockers", "--node", node, "-o", "json")
		if err := json.Unmarshal([]byte(out), &nodes); err != nil || len(nodes) != 1 {
			return fmt.Errorf("%w\n%s", err, out)
		}
		if rows := value[int](ctx, t, `document.querySelectorAll("#panel [aria-labelledby=h-drain] tbody tr").length`); rows != len(nodes[0].Blockers) || rows == 0 {
			return fmt.Errorf("the panel has %d rows, and the command %d:\n%s", rows, len(nodes[0].Blockers), out)
		}
		return nil
	})
}
