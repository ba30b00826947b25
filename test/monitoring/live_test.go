// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package monitoring

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/test/framework"
)

var cluster framework.Cluster

func TestMain(m *testing.M) {
	os.Exit(framework.Main(m, &cluster, "--nodes=0"))
}

// TestPrometheus runs a Prometheus that scrapes the manager while a few objects of each kind exist.
// Every dashboard panel must show data, and every alert must use existing metrics.
func TestPrometheus(t *testing.T) {
	p := prometheus{framework.FreeAddress(t)}
	gates := p.gates(t, map[string]any{"name": "never", "query": `vector(1) > 2`})
	manager := cluster.StartManager(t, append([]string{"--metrics-secure=true", "--controllers=*,node-maintenance", "--restart-queries=" + gates}, cluster.ElectUntilReleased(t)...)...)
	p.watch(t, manager)
	since := time.Now()
	load(t, p)

	t.Run("dashboards", func(t *testing.T) {
		files, err := filepath.Glob(filepath.Join(framework.Root(), "config", "monitoring", "dashboards", "*.json"))
		if err != nil || len(files) == 0 {
			t.Fatalf("%d dashboards: %v", len(files), err)
		}
		for _, file := range files {
			for title, exprs := range panels(t, file) {
				framework.Eventually(t, filepath.Base(file)+": "+title+" has numbers", func() (failed error) {
					for _, expr := range exprs {
						failed = errors.Join(failed, p.answered(expr, since))
					}
					return failed
				})
			}
		}
	})
	t.Run("alerts", func(t *testing.T) {
		for name, r := range rules(t) {
			selectors := p.selectors(t, r.Expr)
			if len(selectors) == 0 {
				t.Errorf("%s uses no series", name)
			}
			for _, selector := range selectors {
				framework.Eventually(t, name+" has series", func() error { return p.answered(selector, since) })
			}
		}
		framework.Eventually(t, "the alert for the missing target is pending", func() error {
			var data struct {
				Alerts []struct {
					Labels map[string]string
					State  string
				}
			}
			if err := p.get("alerts", nil, &data); err != nil {
				return err
			}
			for _, a := range data.Alerts {
				if a.Labels["alertname"] == "TidekeeperSchedulesStopped" && a.Labels["reason"] == "TargetNotFound" && a.State == "pending" {
					return nil
				}
			}
			return fmt.Errorf("the alerts are %v", data.Alerts)
		})
		var data struct {
			Groups []struct {
				Rules []struct{ Name, Health, LastError string }
			}
		}
		if err := p.get("rules", nil, &data); err != nil {
			t.Fatal(err)
		}
		for _, group := range data.Groups {
			for _, r := range group.Rules {
				if r.LastError != "" || r.Health == "err" {
					t.Errorf("%s is %s: %s", r.Name, r.Health, r.LastError)
				}
			}
		}
	})
}

// load creates a pool with a cordoned node, pods, a maintenance, a restart, a schedule whose target is
// missing, and drift. Each counted event happens twice, because rates need two scrapes.
func load(t *testing.T, p prometheus) {
	t.Helper()
	cluster.AddNodes(t, "w", 3, "--pool", "w")
	cordoned := framework.Node("w-3")
	cluster.Change(t, cordoned, func() { cordoned.Spec.Unschedulable = true })
	pool := framework.Pool("w")
	pool.Spec.Headroom = &tidekeeperv1.Headroom{Nodes: 1}
	pool.Spec.Drainable = &tidekeeperv1.Drainable{}
	pool.Spec.Labels = map[string]tidekeeperv1.LabelValue{"example.com/w": "1"}
	cluster.Apply(t, pool)
	// A pod without a controller blocks a drain, and the maintenance has begun no drain.
	cluster.Apply(t, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "bare", Namespace: metav1.NamespaceDefault}, Spec: framework.App})
	cluster.Apply(t, &tidekeeperv1.NodeMaintenance{
		ObjectMeta: metav1.ObjectMeta{Name: "weekly"},
		Spec:       tidekeeperv1.NodeMaintenanceSpec{Nodes: tidekeeperv1.MaintenanceNodes{Pools: []string{"w"}}, Suspend: true},
	})
	cluster.Apply(t, scheduled("nothing"))
	web := framework.Deployment("web", 2, framework.App)
	cluster.Apply(t, web)
	restart := scheduled("web")
	cluster.Apply(t, restart)
	for n := range 2 {
		eventuallyAvailable(t, web)
		tick := cluster.RequestRestart(t, restart, time.Now())
		framework.Eventually(t, "the restart has succeeded", func() error {
			cluster.Refresh(t, restart)
			if len(restart.Status.History) <= n || restart.Status.History[0].Outcome != tidekeeperv1.OutcomeSucceeded {
				return fmt.Errorf("tick %s, status %+v", tick, restart.Status)
			}
			return nil
		})
		node := framework.Node("w-1")
		cluster.Change(t, node, func() { node.Labels["example.com/w"] = "changed" })
		framework.Eventually(t, "the label is reverted", func() error {
			if cluster.Refresh(t, node); node.Labels["example.com/w"] != "1" {
				return fmt.Errorf("it is %q", node.Labels["example.com/w"])
			}
			return nil
		})
		p.awaitScrape(t, time.Now())
	}
}

func scheduled(target string) *tidekeeperv1.ScheduledRestart {
	r := framework.ScheduledRestart(target)
	r.Spec = tidekeeperv1.ScheduledRestartSpec{TargetRef: tidekeeperv1.TargetRef{Kind: "Deployment", Name: target}}
	return r
}

func eventuallyAvailable(t *testing.T, d *appsv1.Deployment) {
	t.Helper()
	framework.Eventually(t, d.Name+" is available", func() error {
		cluster.Refresh(t, d)
		if d.Status.AvailableReplicas != *d.Spec.Replicas {
			return fmt.Errorf("%d replicas are", d.Status.AvailableReplicas)
		}
		return nil
	})
}

// panels returns the expressions of each dashboard panel, keyed by panel title, with Grafana's
// variables replaced.
func panels(t *testing.T, file string) map[string][]string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var dashboard struct {
		Panels []struct {
			Type, Title string
			Targets     []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(text, &dashboard); err != nil {
		t.Fatal(err)
	}
	all := map[string][]string{}
	variables := strings.NewReplacer("$__rate_interval", "1m", "$pool", ".*")
	for _, panel := range dashboard.Panels {
		for _, target := range panel.Targets {
			all[panel.Title] = append(all[panel.Title], variables.Replace(target.Expr))
		}
		if panel.Type != "row" && len(panel.Targets) == 0 {
			t.Errorf("%s: the panel %s has no query", file, panel.Title)
		}
	}
	if len(all) == 0 {
		t.Fatalf("%s has no panels", file)
	}
	return all
}

// selectors returns the series selectors in a PromQL expression, as parsed by Prometheus.
func (p prometheus) selectors(t *testing.T, expr string) []string {
	t.Helper()
	var tree any
	if err := p.get("parse_query", url.Values{"query": {expr}}, &tree); err != nil {
		t.Fatalf("%s: %v", expr, err)
	}
	var found []string
	var walk func(any)
	walk = func(node any) {
		switch node := node.(type) {
		case []any:
			for _, n := range node {
				walk(n)
			}
		case map[string]any:
			if matchers, ok := node["matchers"].([]any); ok {
				var parts []string
				for _, m := range matchers {
					m := m.(map[string]any)
					parts = append(parts, fmt.Sprintf("%s%s%q", m["name"], m["type"], m["value"]))
				}
				found = append(found, "{"+strings.Join(parts, ", ")+"}")
				return
			}
			for _, n := range node {
				walk(n)
			}
		}
	}
	walk(tree)
	return found
}
