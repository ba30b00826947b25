// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"fmt"
	"strings"
	"testing"

	"tidekeeper.dev/tidekeeper/test/framework"
)

// deployment is the manifest template of the tests' Deployments.
const deployment = `---
apiVersion: apps/v1
kind: Deployment
metadata:
  name: %[1]s
  namespace: shop
  annotations: {%[4]s}
spec:
  replicas: %[2]d
  progressDeadlineSeconds: %[7]d
  selector: {matchLabels: {app: %[1]s}}
  template:
    metadata: {labels: {app: %[1]s}, annotations: {%[5]s}}
    spec:
      runtimeClassName: node-pool-%[3]s
      containers: [{name: app, image: "example.com/%[1]s:1", env: [{name: PASSWORD, value: ` + secretValue + `}], resources: {requests: {cpu: %[6]s, memory: 3Gi}}}]
`

// secretValue is the value of an environment variable of all pods. It must not appear on any page.
const secretValue = "s3cret-of-the-shop"

const (
	nightly = `tidekeeper.dev/scheduled-restart: "true", tidekeeper.dev/restart-schedule: "0 3 * * *"`
	often   = `tidekeeper.dev/scheduled-restart: "true", tidekeeper.dev/restart-schedule: "0 */6 * * *"`
)

// kubectl runs kubectl and returns its output. It fails the test if kubectl fails.
func kubectl(t *testing.T, stdin string, args ...string) string {
	t.Helper()
	out, err := cluster.Kubectl(stdin, args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// hostile is a string that would run as a script if it were not escaped.
const hostile = `<img src=x onerror="window.ran=1">"><script>window.ran=1</script>`

// hostileEvent is the manifest of an event about a pool. Its note contains hostile.
var hostileEvent = fmt.Sprintf(`
apiVersion: v1
kind: Event
metadata: {name: hostile, namespace: default}
involvedObject: {apiVersion: tidekeeper.dev/v1, kind: NodePool, name: worker}
type: Warning
reason: Odd
message: %q
`, hostile)

// buildWorld creates the objects for the tests: two pools, one of which is nearly full and has
// pending pods, and ScheduledRestarts, some of them due at the same minute, and one for an
// unhealthy workload.
func buildWorld(t *testing.T) {
	t.Helper()
	cluster.StartManager(t)
	for i, node := range []string{"node-1", "node-2", "node-3"} {
		kubectl(t, "", "label", "node", node, "node-role.kubernetes.io/worker=", fmt.Sprintf("topology.kubernetes.io/zone=eu-%c", 'a'+i%2))
	}
	kubectl(t, "", "label", "node", "node-4", "node-role.kubernetes.io/gpu=", "topology.kubernetes.io/zone=eu-b")
	kubectl(t, "", "apply", "-k", framework.Root()+"/config/samples")
	var manifests strings.Builder
	manifests.WriteString("apiVersion: v1\nkind: Namespace\nmetadata: {name: shop}\n")
	for _, name := range []string{"api", "cart", "mail", "search", "web"} {
		fmt.Fprintf(&manifests, deployment, name, 4, "worker", nightly, "", "1500m", 600)
	}
	fmt.Fprintf(&manifests, deployment, "train", 3, "gpu", "", "", "7", 600)
	// A forecast expects the restarts of a Deployment to be missed once its rollout has failed.
	fmt.Fprintf(&manifests, deployment, "broken", 2, "worker", often, "sandbox.tidekeeper.dev/behavior: never-ready", "100m", 5)
	kubectl(t, manifests.String(), "apply", "-f", "-")
	kubectl(t, "", "cordon", "node-3")
	kubectl(t, "", "wait", "-n", "shop", "deployment/web", "--for=condition=Available", framework.LongTimeout)
	kubectl(t, "", "wait", "nodepool/worker", "--for=jsonpath={.status.nodeCount}=3", framework.LongTimeout)
	kubectl(t, "", "wait", "-n", "shop", "scheduledrestart/web", "--for=jsonpath={.status.nextScheduleTime}", framework.LongTimeout)
	now := kubectlTide(t, "restarts", "now", "web", "-n", "shop")
	if !strings.Contains(now, "requested a restart") {
		t.Fatal(now)
	}
	kubectl(t, "", "wait", "-n", "shop", "scheduledrestart/web", "--for=jsonpath={.status.history[0].outcome}=Succeeded", framework.LongTimeout)
}
