// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package readme

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"tidekeeper.dev/tidekeeper/sandbox/client/console"
	"tidekeeper.dev/tidekeeper/test/framework"
)

// tasks lists the pages of docs/tasks in the order in which they run on a shared sandbox, which
// begins and ends without Tidekeeper.
var tasks = []string{
	"install-with-helm", "restart-every-sunday-night", "freeze-restarts", "hold-restarts-while-an-alert-fires",
	"which-restarts-will-be-missed-tonight", "restart-when-a-configmap-changes", "restart-pods-by-age",
	"restart-through-disruption-budgets", "how-many-more-pods-fit", "what-is-lost-with-a-node-or-zone", "find-what-blocks-a-drain",
	"taint-a-pool-with-paced-noexecute", "find-out-why-a-pod-is-slow-to-start",
	"reboot-a-pool-every-sunday-night", "upgrade-kubelets-pool-by-pool", "replace-nodes-older-than-30-days", "get-metrics", "upgrade", "remove-everything",
}

// elsewhere lists the pages that need no cluster, or that other tests run: TestTryIt,
// TestMigrateFromCluster in test/cli, and TestGuide in test/release.
var elsewhere = []string{"try-it", "move-from-the-original-operators", "use-a-release", "verify-a-release"}

// TestAllTasksAreFollowed checks that a test runs every page of docs/tasks.
func TestAllTasksAreFollowed(t *testing.T) {
	pages, err := filepath.Glob(filepath.Join(framework.Root(), "docs", "tasks", "*.md"))
	if err != nil || len(pages) == 0 {
		t.Fatalf("no tasks: %v", err)
	}
	var names []string
	for _, page := range pages {
		names = append(names, strings.TrimSuffix(filepath.Base(page), ".md"))
	}
	want := slices.Sorted(slices.Values(slices.Concat(tasks, elsewhere)))
	if slices.Sort(names); !slices.Equal(names, want) {
		t.Errorf("the pages are %q, and followed are %q", names, want)
	}
}

// web is the manifest of the Deployment that the pages use.
const web = `apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop}
spec:
  replicas: 3
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - name: app
        image: registry.example.com/web:1
        resources: {requests: {cpu: 500m, memory: 2Gi}}
        envFrom: [{configMapRef: {name: web-settings, optional: true}}]
`

// TestTasks runs the pages of docs/tasks one after the other on one sandbox. Pods on simulated
// nodes run nothing, so the manager runs as a process next to the chart's pods, and uses their
// lease.
func TestTasks(t *testing.T) {
	dir := checkout(t)
	alerts := startAlerts(t)
	write(t, dir, "web.yaml", web)
	write(t, dir, "queries.yaml", fmt.Sprintf("prometheus: {url: %q}\nqueries:\n- name: alerts\n  query: ALERTS{namespace=$namespace}\n", alerts.url))
	sh := console.Start(t, dir)
	sh.Must(t, `export PATH="$PWD/bin:$PATH" KUBECONFIG="$PWD/kubeconfig"`, "sandbox up --nodes 5 --detach --kubeconfig kubeconfig")
	manager := "tidekeeper --controllers '*,node-maintenance' --leader-elect --leader-elect-resource-namespace tidekeeper-system --optional-watches configmaps" +
		" --restart-change-settle 1s --no-execute-interval 1s --restart-queries queries.yaml 2> tidekeeper.log &"
	started := false
	for _, name := range tasks {
		ok := t.Run(name, func(t *testing.T) {
			t.Cleanup(func() {
				if t.Failed() {
					lines, _ := sh.Run(t, "kubectl get srestart,pod,event -A -o wide; tail -n 40 tidekeeper.log")
					t.Log("the cluster is now:\n" + strings.Join(lines, "\n"))
				}
			})
			page := path.Join("docs", "tasks", name+".md")
			for file, text := range manifests(t, page) {
				// The nodes of the sandbox are minutes old.
				write(t, dir, file, strings.ReplaceAll(text, "minAgeSeconds: 2592000", "minAgeSeconds: 60"))
			}
			if started {
				prepare(t, sh)
			}
			alerts.firing.Store(name == "hold-restarts-while-an-alert-fires")
			defer alerts.firing.Store(false)
			followWith(t, page, 1, sh, func(command string) {
				switch {
				case !started && strings.HasPrefix(command, "kubectl tide check"):
					sh.Must(t, manager)
					started = true
				case strings.HasPrefix(command, "kubectl apply -f rebooter.yaml"):
					sh.Must(t, machine("node-1", "bootID", "first"))
				case strings.HasPrefix(command, "kubectl wait nodemaintenance/try"):
					sh.Must(t, machine("node-1", "bootID", "second"))
				case strings.HasPrefix(command, "kubectl wait nodemaintenance/upgrade"):
					sh.Must(t, machine("node-1", "kubeletVersion", "v1.99.0"))
				case strings.HasPrefix(command, "kubectl wait srestart"):
					// The page's command waits until the alert stops firing.
					alerts.firing.Store(false)
				}
			})
		})
		if !ok {
			return // After a failure, the state of the cluster would differ from the next page's assumptions.
		}
	}
}

// machine returns the command by which a simulated node reports another boot ID or version, as a real
// node does after a reboot or an upgrade.
func machine(node, field, value string) string {
	return fmt.Sprintf(`kubectl patch node %s --subresource=status --type=merge --patch '{"status":{"nodeInfo":{"%s":"%s"}}}'`, node, field, value)
}

// prepare resets the sandbox to the state that a page assumes: the Deployment exists, but no
// objects of Tidekeeper.
func prepare(t *testing.T, sh *console.Shell) {
	t.Helper()
	sh.Must(t,
		"kubectl delete nodemaintenances --all --timeout=120s",
		"kubectl delete nodepools,freezes --all --timeout=120s",
		"kubectl delete daemonset rebooter -n kube-system --ignore-not-found",
		"kubectl delete namespace shop --ignore-not-found",
		"kubectl label node --all node-role.kubernetes.io/worker- node-role.kubernetes.io/canary- topology.kubernetes.io/zone-",
		"kubectl create namespace shop",
		"kubectl apply -f web.yaml",
		"kubectl rollout status deployment web -n shop",
	)
}

var manifest = regexp.MustCompile("(?ms)^```yaml\n# ([\\w-]+\\.yaml)\n(.*?)^```$")

// manifests returns the files that a page shows, keyed by the name in their first line.
func manifests(t *testing.T, page string) map[string]string {
	t.Helper()
	files := map[string]string{}
	for _, match := range manifest.FindAllStringSubmatch(read(t, page), -1) {
		files[match[1]] = match[2]
	}
	return files
}

func write(t *testing.T, dir, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// alerts is a fake Prometheus with an alert for the namespace "shop" that can fire.
type alerts struct {
	url    string
	firing atomic.Bool
}

func startAlerts(t *testing.T) *alerts {
	t.Helper()
	a := &alerts{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		result := ""
		if a.firing.Load() && strings.Contains(r.FormValue("query"), `namespace="shop"`) {
			result = `{"metric": {"__name__": "ALERTS", "alertname": "HighErrorRate", "alertstate": "firing", "namespace": "shop", "severity": "critical"}, "value": [1, "1"]}`
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(w, `{"status": "success", "data": {"resultType": "vector", "result": [%s]}}`, result)
	}))
	t.Cleanup(server.Close)
	a.url = server.URL
	return a
}
