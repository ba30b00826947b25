// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"tidekeeper.dev/tidekeeper/internal/view"
	"tidekeeper.dev/tidekeeper/test/framework"
)

// blockedWorkload is a Deployment on the drained nodes, with additional YAML lines for the pods'
// metadata and spec.
type blockedWorkload struct {
	name, namespace, metadata, spec, requests string
	replicas                                  int
	more                                      string // other objects
}

func (w blockedWorkload) manifest() string {
	return fmt.Sprintf(`---
apiVersion: apps/v1
kind: Deployment
metadata: {name: %[1]s, namespace: %[2]s}
spec:
  replicas: %[3]d
  selector: {matchLabels: {app: %[1]s}}
  template:
    metadata:
      labels: {app: %[1]s}
%[4]s
    spec:
      nodeSelector: {example.com/to-drain: "true"}
      containers: [{name: app, image: "example.com/app:1", resources: {requests: {cpu: "%[5]s"}}}]
%[6]s
%[7]s
`, w.name, w.namespace, max(1, w.replicas), w.metadata, w.requests, w.spec, w.more)
}

// aBudgetFor returns the manifest of a PodDisruptionBudget for a workload's pods.
func aBudgetFor(name, app, rule string) string {
	return fmt.Sprintf("---\napiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata: {name: %s, namespace: leaving}\nspec: {selector: {matchLabels: {app: %s}}, %s}\n", name, app, rule)
}

const (
	theDisk = `---
apiVersion: v1
kind: PersistentVolume
metadata: {name: disk}
spec:
  capacity: {storage: 1Gi}
  accessModes: [ReadWriteOnce]
  storageClassName: local
  local: {path: /disk}
  nodeAffinity: {required: {nodeSelectorTerms: [{matchExpressions: [{key: kubernetes.io/hostname, operator: In, values: [drain-1]}]}]}}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: disk, namespace: leaving}
spec: {accessModes: [ReadWriteOnce], storageClassName: local, volumeName: disk, resources: {requests: {storage: 1Gi}}}
`
	theBarePod = `---
apiVersion: v1
kind: Pod
metadata: {name: bare, namespace: leaving}
spec:
  nodeSelector: {example.com/to-drain: "true"}
  containers: [{name: app, image: "example.com/app:1"}]
`
	// The webhook's port 9 (discard) has no listener.
	theWebhook = `---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: silent}
webhooks:
- name: silent.example.com
  clientConfig: {url: "https://127.0.0.1:9/"}
  rules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods/eviction]}]
  namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: watched}}
  sideEffects: None
  admissionReviewVersions: [v1]
  timeoutSeconds: 1
`
)

// TestPoolsBlockersComeTrue drains a node and compares the result with the output of pools
// blockers. Pods that the command names must stay, or be harmed in the reported way and for the
// reported reason; all other pods must leave the node.
func TestPoolsBlockersComeTrue(t *testing.T) {
	manager := cluster.StartManager(t)
	cluster.AddNodes(t, "drain", 2, "--allocatable=cpu=8,memory=16Gi,pods=50")
	// The pods must be on this node, so the other node gets the label that they select after them.
	cluster.MustKubectl(t, "", "label", "node", "drain-1", "example.com/to-drain=true")
	blocked := []blockedWorkload{
		{name: "guarded", namespace: "leaving", more: aBudgetFor("guarded", "guarded", "minAvailable: 1")},
		{name: "twice", namespace: "leaving", more: aBudgetFor("twice-a", "twice", "maxUnavailable: 1") + aBudgetFor("twice-b", "twice", "maxUnavailable: 1")},
		{name: "refused", namespace: "watched"},
		{name: "held", namespace: "leaving", metadata: "      finalizers: [example.com/hold]"},
		{name: "slow", namespace: "leaving", metadata: `      annotations: {sandbox.tidekeeper.dev/terminated-after: 2h}`, spec: "      terminationGracePeriodSeconds: 7200"},
		{name: "scratch", namespace: "leaving", spec: "      volumes: [{name: cache, emptyDir: {}}]"},
		{name: "disk", namespace: "leaving", spec: "      volumes: [{name: disk, persistentVolumeClaim: {claimName: disk}}]"},
		{name: "wide", namespace: "leaving", requests: "5"},
		{name: "free", namespace: "leaving", replicas: 2, more: aBudgetFor("free", "free", "maxUnavailable: 1")},
	}
	manifest := "apiVersion: v1\nkind: Namespace\nmetadata: {name: leaving}\n---\napiVersion: v1\nkind: Namespace\nmetadata: {name: watched}\n" + theDisk + theBarePod + theWebhook
	for _, w := range blocked {
		if w.requests == "" {
			w.requests = "100m"
		}
		manifest += w.manifest()
	}
	t.Cleanup(func() {
		cluster.MustKubectl(t, "", "delete", "validatingwebhookconfiguration", "silent")
		framework.Eventually(t, "no pod holds its namespace", func() error {
			for _, pod := range podsOn(t, "") {
				if len(pod.Finalizers) > 0 {
					_, _ = cluster.Kubectl("", "patch", "pod", pod.Name, "-n", pod.Namespace, "--type=merge", `--patch={"metadata":{"finalizers":null}}`)
				}
			}
			_, err := cluster.Kubectl("", "delete", "namespace", "leaving", "watched", "--ignore-not-found", "--timeout=1s")
			_, _ = cluster.Kubectl("", "delete", "pods", "--all", "-n", "leaving", "--force", "--grace-period=0")
			return err
		})
		cluster.MustKubectl(t, "", "delete", "persistentvolume", "disk", "--ignore-not-found", "--wait=false")
	})
	cluster.MustKubectl(t, manifest, "apply", "-f", "-")
	framework.Eventually(t, "all pods are ready on the node to be drained, and the budgets are computed", func() error {
		if ready := len(podsOn(t, "drain-1")); ready != 11 {
			return fmt.Errorf("%d of 11 are there", ready)
		}
		for _, pod := range podsOn(t, "drain-1") {
			if !slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
				return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
			}) {
				return fmt.Errorf("%s is not ready", pod.Name)
			}
		}
		return diff("1", cluster.MustKubectl(t, "", "get", "pdb", "free", "-n", "leaving", "-o", "jsonpath={.status.disruptionsAllowed}"))
	})
	cluster.MustKubectl(t, "", "label", "node", "drain-2", "example.com/to-drain=true")

	want := map[string][]string{
		"Budget": {"Deployment/guarded"}, "SeveralBudgets": {"Deployment/twice"}, "Refused": {"Deployment/refused"}, "Finalizer": {"Deployment/held"},
		"LongGrace": {"Deployment/slow"}, "NoController": {"Pod/bare"}, "LocalData": {"Deployment/scratch"}, "LocalVolume": {"Deployment/disk"}, "NoPlace": {"Deployment/wide"},
	}
	// With 5 of the other node's 8 CPUs taken, the largest pod no longer fits there.
	cluster.MustKubectl(t, `apiVersion: v1
kind: Pod
metadata: {name: filler, namespace: leaving}
spec:
  nodeName: drain-2
  containers: [{name: app, image: "example.com/app:1", resources: {requests: {cpu: "5"}}}]
`, "apply", "-f", "-")
	framework.Eventually(t, "the other node is filled", func() error { return diff(1, len(podsOn(t, "drain-2"))) })
	named := func(want map[string][]string, args ...string) error {
		t.Helper()
		shown := command{args: append([]string{"pools", "blockers", "--node=drain-1", "-o=json"}, args...)}.run(t)
		if shown.code != 2 {
			t.Fatalf("exit code %d: %s", shown.code, shown.stderr)
		}
		var nodes []view.NodeBlockers
		if err := json.Unmarshal([]byte(shown.stdout), &nodes); err != nil || len(nodes) != 1 || nodes[0].Pods != 11 {
			t.Fatalf("%v: %s", err, shown.stdout)
		}
		got := map[string][]string{}
		for _, b := range nodes[0].Blockers {
			got[string(b.Reason)] = append(got[string(b.Reason)], b.Workload)
		}
		return diff(want, got)
	}
	// The plugin reads nodes and pods from the API server's cache.
	framework.Eventually(t, "the blockers are named", func() error { return named(want, "--try") })
	without := maps.Clone(want)
	delete(without, "Refused")
	if err := named(without); err != nil {
		t.Errorf("named without --try %v", err)
	}
	if got := (command{args: []string{"pools", "blockers", "--node=drain-1"}}).run(t); !strings.Contains(got.stdout, "never allows a disruption: 1 of 1 pods must be healthy") || !strings.Contains(got.stdout, "0 of 1 nodes can be drained") {
		t.Errorf("the table is\n%s", got.stdout)
	}

	askDrainable(t, "to-drain", "example.com/to-drain")
	assertDrainableAgrees(t, manager, "to-drain")

	// A drain without flags rejects the pods that need a flag.
	out, err := cluster.Kubectl("", "drain", "drain-1", "--ignore-daemonsets")
	refused := sets.New[string]()
	for _, name := range regexp.MustCompile(`leaving/[a-z]+`).FindAllString(out, -1) {
		refused.Insert(name)
	}
	if err == nil || !refused.Equal(sets.New("leaving/bare", "leaving/scratch")) {
		t.Errorf("a drain without flags: %v\n%s", err, out)
	}
	framework.Eventually(t, "the drain has moved all that it can", func() error {
		out, err = cluster.Kubectl("", "drain", "drain-1", "--ignore-daemonsets", "--force", "--delete-emptydir-data", "--timeout=6s")
		if err == nil {
			t.Fatalf("the drain ended:\n%s", out)
		}
		stayed, pending := sets.New[string](), sets.New[string]()
		for _, pod := range podsOn(t, "") {
			app := pod.Labels["app"]
			switch {
			case pod.Spec.NodeName == "":
				pending.Insert(app)
			case pod.Spec.NodeName == "drain-1" && pod.DeletionTimestamp != nil:
				stayed.Insert(app + " ending")
			case pod.Spec.NodeName == "drain-1":
				stayed.Insert(app)
			}
		}
		// If the API server is slow, the drain ends before it has received all reasons.
		var unsaid error
		for _, reason := range []string{"would violate the pod's disruption budget", "more than one PodDisruptionBudget", "silent.example.com"} {
			if !strings.Contains(out, reason) {
				unsaid = errors.Join(unsaid, fmt.Errorf("the drain does not say %q:\n%s", reason, out))
			}
		}
		return cmp.Or(
			diff([]string{"guarded", "held ending", "refused", "slow ending", "twice"}, sets.List(stayed)),
			diff([]string{"disk", "wide"}, sets.List(pending)),
			unsaid,
		)
	})
	assertDrainableAgrees(t, manager, "to-drain")
}

// podsOn returns the test's pods on the given node, or on all nodes if `node` is empty.
func podsOn(t *testing.T, node string) (found []corev1.Pod) {
	t.Helper()
	for _, namespace := range []string{"leaving", "watched"} {
		list := &corev1.PodList{}
		if err := cluster.List(context.WithoutCancel(t.Context()), list, client.InNamespace(namespace)); err != nil {
			t.Fatal(err)
		}
		for _, pod := range list.Items {
			if node == "" || pod.Spec.NodeName == node {
				found = append(found, pod)
			}
		}
	}
	return found
}

func TestPoolsBlockersErrors(t *testing.T) {
	for args, want := range map[string]result{
		"pools blockers":                      {stderr: "The pools have no nodes.\n"},
		"pools blockers none":                 {code: 3, stderr: "error: there is no NodePool \"none\"\n"},
		"pools blockers --node none":          {code: 3, stderr: "error: there is no Node \"none\"\n"},
		"pools blockers --node node-1 worker": {code: 1, stderr: "error: leave out the name of the pool: --node is about nodes of any pool\n"},
	} {
		if err := diff(want, command{args: strings.Fields(args)}.run(t)); err != nil {
			t.Errorf("kubectl tide %s %v", args, err)
		}
	}
}
