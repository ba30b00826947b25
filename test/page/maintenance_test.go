// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"context"
	"fmt"
	"testing"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
)

// maintained is the manifest template of a NodeMaintenance of two nodes.
const maintained = `
apiVersion: tidekeeper.dev/v1
kind: NodeMaintenance
metadata: {name: reboot}
spec: {nodes: {names: [%[1]s, absent]}, until: Rebooted}
`

// maintainedStatus is the status of a round in which a node is drained and another is done.
const maintainedStatus = `{"status": {"observedGeneration": 1, "selected": 2, "done": 1, "running": 1, "nodes": {
	%[1]q: {"uid": "a", "phase": "Drained", "since": "2026-01-01T00:00:00Z", "startTime": "2026-01-01T00:00:00Z", "cordoned": true},
	"absent": {"uid": "b", "phase": "Done", "since": "2026-01-01T00:00:00Z", "startTime": "2026-01-01T00:00:00Z"}}}}`

// showsMaintenance checks that the overview has the round of a NodeMaintenance, and the panel of a node
// its phase and what to do. The NodeMaintenance stays, so that later checks look at its row, too.
func showsMaintenance(ctx context.Context, t *testing.T, d *dashboard) {
	node := kubectl(t, "", "get", "pods", "-n", "shop", "-l", "app=api", "--field-selector=status.phase=Running", "-o", "jsonpath={.items[0].spec.nodeName}")
	kubectl(t, fmt.Sprintf(maintained, node), "apply", "-f", "-")
	kubectl(t, "", "patch", "nodemaintenance", "reboot", "--subresource=status", "--type=merge", "-p", fmt.Sprintf(maintainedStatus, node))
	open(ctx, t, d.base+"/")
	until(ctx, t, "the overview has the round", fmt.Sprintf(`/reboot[^]*1\/2[^]*%s Drained/.test(document.querySelector("[aria-labelledby=h-maint]")?.innerText)`, node))
	kubectl(t, "", "annotate", "node", node, tidekeeperv1.DrainedForMaintenanceAnnotation+"=reboot")
	defer kubectl(t, "", "annotate", "node", node, tidekeeperv1.DrainedForMaintenanceAnnotation+"-")
	open(ctx, t, d.base+"/pools/worker?node="+node)
	until(ctx, t, "the panel says what to do", `/Maintenance reboot: Drained [^]*reboot the machine, or: kubectl tide maintenance done/.test(document.getElementById("maintenance")?.innerText)`)
}
