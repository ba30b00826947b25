// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package monitoring

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"tidekeeper.dev/tidekeeper/test/framework"
)

// rule is an alert.
type rule struct {
	Alert       string
	Expr        string
	Labels      map[string]string
	Annotations map[string]string
}

// rules returns all alerts by their names.
func rules(t *testing.T) map[string]rule {
	t.Helper()
	var object struct {
		Spec struct{ Groups []struct{ Rules []rule } }
	}
	readYAML(t, &object, "monitoring", "prometheus_rule.yaml")
	all := map[string]rule{}
	for _, group := range object.Spec.Groups {
		for _, r := range group.Rules {
			all[r.Alert] = r
		}
	}
	return all
}

// series are the series of a test, by name and labels, with the value of each minute in
// promtool's notation: 0+1x9 is 0, 1, … 9.
type series map[string]string

// alertCase has series for which an alert fires, and others for which it does not.
type alertCase struct {
	// fires are series for which it fires, with these labels and this summary.
	fires   series
	after   string
	labels  map[string]string
	summary string
	// quiet are series for which nothing fires, at any time up to the same time.
	quiet []series
}

// alertCases are the cases by name of the alert. A quiet case is as close as possible to
// one that fires.
var alertCases = map[string]alertCase{
	"TidekeeperDown": {
		fires: series{`up{job="tidekeeper-metrics", instance="a"}`: "0x60"}, after: "6m",
		summary: "No manager of Tidekeeper can be scraped.",
		quiet: []series{
			{
				`up{job="tidekeeper-metrics", instance="a"}`: "0x60",
				`up{job="tidekeeper-metrics", instance="b"}`: "1x60",
			},
			// Down for some minutes.
			{`up{job="tidekeeper-metrics", instance="a"}`: "1x8 0x3 1x60"},
		},
	},
	"TidekeeperNoLeader": {
		fires: series{
			up: "1x60",
			`leader_election_master_status{job="tidekeeper-metrics", instance="a"}`: "0x60",
			`leader_election_master_status{job="tidekeeper-metrics", instance="b"}`: "0x60",
		},
		after: "6m", summary: "Managers run, and none of them leads.",
		quiet: []series{
			{
				`leader_election_master_status{job="tidekeeper-metrics", instance="a"}`: "0x60",
				`leader_election_master_status{job="tidekeeper-metrics", instance="b"}`: "1x60",
			},
			{`leader_election_master_status{job="tidekeeper-metrics", instance="a"}`: "1x8 0x3 1x60"},
			// Those of another program.
			{`leader_election_master_status{job="other", instance="a"}`: "0x60"},
		},
	},
	"TidekeeperReconcileErrors": {
		// One object that is retried every 17 minutes.
		fires: series{reconcileErrors: "0x5 5x16 6x16 7x16 8x16 9x16 10x16"}, after: "60m",
		labels:  map[string]string{"controller": "nodepool"},
		summary: "The controller nodepool has been failing for 45 minutes.",
		// An API server that was down for ten minutes.
		quiet: []series{{reconcileErrors: "0x5 0+9x10 90x60"}},
	},
	"TidekeeperReconcilePanic": {
		fires: series{`controller_runtime_reconcile_panics_total{job="tidekeeper-metrics", controller="nodepool"}`: "0x5 1x60"}, after: "10m",
		labels:  map[string]string{"controller": "nodepool"},
		summary: "The controller nodepool has panicked.",
		quiet:   []series{{`controller_runtime_reconcile_panics_total{job="tidekeeper-metrics", controller="nodepool"}`: "1x60"}},
	},
	"TidekeeperQueueStuck": {
		fires: series{`workqueue_longest_running_processor_seconds{job="tidekeeper-metrics", controller="nodepool", name="nodepool"}`: "0+60x60"}, after: "12m",
		labels:  map[string]string{"controller": "nodepool"},
		summary: "The controller nodepool has been reconciling one object for 12m 0s.",
		quiet:   []series{{`workqueue_longest_running_processor_seconds{job="tidekeeper-metrics", controller="nodepool", name="nodepool"}`: "250x8 400x3 250x60"}},
	},
	"TidekeeperQueueBacklog": {
		fires: series{
			depth + `, priority="0", instance="a"}`:                                 "5x60",
			`leader_election_master_status{job="tidekeeper-metrics", instance="a"}`: "1x60",
		},
		after: "31m", labels: map[string]string{"controller": "nodepool"},
		summary: "The queue of the controller nodepool has not been empty for 30 minutes.",
		quiet: []series{
			// A standby's queue is long; a leader's is empty now and then.
			{
				depth + `, priority="0", instance="a"}`:                                 "5x20 0 5x25 0 5x20",
				depth + `, priority="-100", instance="b"}`:                              "500x60",
				`leader_election_master_status{job="tidekeeper-metrics", instance="a"}`: "1x60",
				`leader_election_master_status{job="tidekeeper-metrics", instance="b"}`: "0x60",
			},
		},
	},
	"TidekeeperPoolNotReady": {
		fires: series{`tidekeeper_nodepool_ready{pool="w", reason="RuntimeClassConflict", instance="a"}`: "0x60"}, after: "16m",
		labels:  map[string]string{"pool": "w", "reason": "RuntimeClassConflict"},
		summary: "The node pool w is not ready: RuntimeClassConflict.",
		quiet: []series{
			{`tidekeeper_nodepool_ready{pool="w", reason="Healthy", instance="a"}`: "1x60"},
			{`tidekeeper_nodepool_ready{pool="w", reason="OutOfSync", instance="a"}`: "0x60"},
			{`tidekeeper_nodepool_ready{pool="w", reason="Deleting", instance="a"}`: "0x10"},
		},
	},
	"TidekeeperPoolConflicted": {
		fires: series{`tidekeeper_nodepool_nodes{pool="w", state="conflicted", instance="a"}`: "2x60"}, after: "16m",
		labels:  map[string]string{"pool": "w"},
		summary: "On 2 nodes of the pool w an older pool has a key that this pool asks for.",
		quiet:   []series{{`tidekeeper_nodepool_nodes{pool="w", state="conflicted", instance="a"}`: "0x2 2x10 0x60"}},
	},
	"TidekeeperPoolNodesOutdated": {
		fires: series{
			`tidekeeper_nodepool_nodes{pool="w", state="outdated", instance="a"}`:  "5x60",
			`tidekeeper_nodepool_nodes{pool="w", state="held_back", instance="a"}`: "2x60",
		},
		after: "31m", labels: map[string]string{"pool": "w"},
		summary: "3 nodes of the pool w have not matched its spec for 30 minutes.",
		quiet: []series{{
			`tidekeeper_nodepool_nodes{pool="w", state="outdated", instance="a"}`:  "5x60",
			`tidekeeper_nodepool_nodes{pool="w", state="held_back", instance="a"}`: "5x60",
		}},
	},
	"TidekeeperPoolWithoutHeadroom": {
		fires: series{
			`tidekeeper_nodepool_headroom{pool="w", instance="a"}`: "0x60",
			`tidekeeper_nodepool_headroom{pool="w", instance="b"}`: "0x60", // The standby has the same.
		},
		after: "31m", labels: map[string]string{"pool": "w"},
		summary: "If a node or zone of the pool w is lost, some of its pods have no place to go.",
		quiet: []series{
			{`tidekeeper_nodepool_headroom{pool="w", instance="a"}`: "1x60"},
			// It comes back within half an hour.
			{`tidekeeper_nodepool_headroom{pool="w", instance="a"}`: "0x20 1x20 0x20"},
		},
	},
	"TidekeeperPoolNearlyFull": {
		fires: series{
			`tidekeeper_nodepool_resource{pool="w", kind="requested", resource="cpu", instance="a"}`:   "95x60",
			`tidekeeper_nodepool_resource{pool="w", kind="allocatable", resource="cpu", instance="a"}`: "100x60",
			// The standby has the same.
			`tidekeeper_nodepool_resource{pool="w", kind="requested", resource="cpu", instance="b"}`:   "95x60",
			`tidekeeper_nodepool_resource{pool="w", kind="allocatable", resource="cpu", instance="b"}`: "100x60",
		},
		after: "31m", labels: map[string]string{"pool": "w", "resource": "cpu"},
		summary: "Of cpu in the pool w, 95% is requested.",
		quiet: []series{
			{
				`tidekeeper_nodepool_resource{pool="w", kind="requested", resource="cpu", instance="a"}`:   "90x60",
				`tidekeeper_nodepool_resource{pool="w", kind="allocatable", resource="cpu", instance="a"}`: "100x60",
			},
			{
				`tidekeeper_nodepool_resource{pool="w", kind="requested", resource="hugepages-2Mi", instance="a"}`:   "0x60",
				`tidekeeper_nodepool_resource{pool="w", kind="allocatable", resource="hugepages-2Mi", instance="a"}`: "0x60",
			},
		},
	},
	"TidekeeperRecurringDrift": {
		// One node, every ten seconds.
		fires: series{`tidekeeper_nodepool_drift_corrections_total{pool="w", instance="a"}`: "0+6x60"}, after: "21m",
		labels:  map[string]string{"pool": "w"},
		summary: "Another client keeps reverting settings of the pool w on nodes.",
		// A thousand nodes, once; another client that tries every minute.
		quiet: []series{
			{`tidekeeper_nodepool_drift_corrections_total{pool="w", instance="a"}`: "0x5 1000x55"},
			{`tidekeeper_nodepool_drift_corrections_total{pool="w", instance="a"}`: "0+1x60"},
		},
	},
	"TidekeeperConflictingWriter": {
		fires: series{`tidekeeper_nodepool_node_writes_total{result="delayed", instance="a"}`: "0+1x60"}, after: "20m",
		summary: "Some nodes never settle, because a pool and another client, or two pools, keep changing them; patches are throttled.",
		quiet:   []series{{`tidekeeper_nodepool_node_writes_total{result="conflict", instance="a"}`: "0+1x60"}},
	},
	"TidekeeperRestartFailed": {
		// The very first failure.
		fires: series{`tidekeeper_restart_ticks_total{outcome="Failed", reason="Timeout", instance="a"}`: "0x5 1x55"}, after: "10m",
		labels:  map[string]string{"reason": "Timeout"},
		summary: "Scheduled restarts have failed within the hour: Timeout.",
		quiet:   []series{{`tidekeeper_restart_ticks_total{outcome="Skipped", reason="Suspended", instance="a"}`: "0+1x60"}},
	},
	"TidekeeperRestartMissed": {
		fires: series{`tidekeeper_restart_ticks_total{outcome="Missed", reason="BudgetExhausted", instance="a"}`: "0x5 1x55"}, after: "10m",
		labels:  map[string]string{"reason": "BudgetExhausted"},
		summary: "Scheduled restarts were missed within the hour: BudgetExhausted.",
		// Another manager is the leader now, and counts from 0.
		quiet: []series{{
			`tidekeeper_restart_ticks_total{outcome="Missed", reason="BudgetExhausted", instance="a"}`: "7x5 _x55",
			`tidekeeper_restart_ticks_total{outcome="Missed", reason="BudgetExhausted", instance="b"}`: "0x60",
			`tidekeeper_restart_ticks_total{outcome="Skipped", reason="Suspended", instance="b"}`:      "0+1x60",
		}},
	},
	"TidekeeperSchedulesStopped": {
		fires: series{
			`tidekeeper_restart_schedules{reason="FailureLimit", instance="a"}`: "3x60",
			// A standby.
			`tidekeeper_restart_schedules{reason="FailureLimit", instance="b"}`: "0x60",
		},
		after: "16m", labels: map[string]string{"reason": "FailureLimit"},
		summary: "3 ScheduledRestarts will not restart anything until a user changes something: FailureLimit.",
		quiet: []series{{
			`tidekeeper_restart_schedules{reason="FailureLimit", instance="a"}`: "0x60",
			`tidekeeper_restart_schedules{reason="Suspended", instance="a"}`:    "3x60",
		}},
	},
	"TidekeeperScheduleOverdue": {
		fires: series{
			`tidekeeper_restart_overdue{namespace="shop", instance="a"}`: "0x5 2x55",
			`tidekeeper_restart_overdue{namespace="", instance="a"}`:     "0x60",
			// A standby.
			`tidekeeper_restart_overdue{namespace="", instance="b"}`: "0x60",
		},
		after: "25m", labels: map[string]string{"namespace": "shop"},
		summary: "2 ScheduledRestarts have not succeeded for two of their own intervals, in the namespace shop.",
		quiet: []series{
			// The second tick succeeds in the end.
			{`tidekeeper_restart_overdue{namespace="shop", instance="a"}`: "0x5 1x10 0x60"},
			{`tidekeeper_restart_overdue{namespace="", instance="a"}`: "0x60"},
		},
	},
	"TidekeeperRestartsLate": {
		fires: series{
			`tidekeeper_restart_start_lateness_seconds_bucket{le="30", instance="a"}`:   "0x60",
			`tidekeeper_restart_start_lateness_seconds_bucket{le="600", instance="a"}`:  "0+1x60",
			`tidekeeper_restart_start_lateness_seconds_bucket{le="+Inf", instance="a"}`: "0+1x60",
		},
		after: "30m", summary: "One in ten scheduled restarts starts 9m 3s late or later.",
		quiet: []series{{
			`tidekeeper_restart_start_lateness_seconds_bucket{le="120", instance="a"}`:  "0+19x60",
			`tidekeeper_restart_start_lateness_seconds_bucket{le="600", instance="a"}`:  "0+20x60",
			`tidekeeper_restart_start_lateness_seconds_bucket{le="+Inf", instance="a"}`: "0+20x60",
		}},
	},
	"TidekeeperPodsSlowToStart": {
		fires: series{
			startup + `, le="120", instance="a"}`:  "0x60",
			startup + `, le="300", instance="a"}`:  "0+1x60",
			startup + `, le="+Inf", instance="a"}`: "0+1x60",
		},
		after: "31m", labels: map[string]string{"pool": "w", "stage": "containers_ready"},
		summary: "One in ten pods of the pool w is in the stage containers_ready for 4m 42s or longer.",
		quiet: []series{{
			startup + `, le="120", instance="a"}`:  "0+19x60",
			startup + `, le="300", instance="a"}`:  "0+20x60",
			startup + `, le="+Inf", instance="a"}`: "0+20x60",
		}},
	},
}

// Series that several cases use.
const (
	up              = `up{job="tidekeeper-metrics", instance="a"}`
	reconcileErrors = `controller_runtime_reconcile_errors_total{job="tidekeeper-metrics", controller="nodepool"}`
	depth           = `workqueue_depth{job="tidekeeper-metrics", controller="nodepool", name="nodepool"`
	startup         = `tidekeeper_pod_startup_stage_seconds_bucket{pool="w", stage="containers_ready"`
)

// Each alert has a severity, a summary, a runbook that exists, and a case.
func TestAlertsAreComplete(t *testing.T) {
	all := rules(t)
	for name, r := range all {
		if r.Labels["severity"] != "critical" && r.Labels["severity"] != "warning" {
			t.Errorf("%s has the severity %q", name, r.Labels["severity"])
		}
		if r.Annotations["summary"] == "" {
			t.Errorf("%s has no summary", name)
		}
		page, ok := strings.CutPrefix(r.Annotations["runbook_url"], "https://tidekeeper.dev/docs/runbooks/")
		text, err := os.ReadFile(filepath.Join(framework.Root(), "docs", "runbooks", page))
		switch {
		case !ok || page != name+".md":
			t.Errorf("the runbook of %s is %q", name, r.Annotations["runbook_url"])
		case err != nil:
			t.Error(err)
		case !strings.HasPrefix(string(text), "# "+name+"\n"):
			t.Errorf("the runbook of %s has another heading", name)
		}
		if c := alertCases[name]; c.fires == nil || len(c.quiet) == 0 {
			t.Errorf("%s has no case in which it fires, or none in which it does not", name)
		}
	}
	for name := range alertCases {
		if _, ok := all[name]; !ok {
			t.Errorf("there is no alert %s", name)
		}
	}
	pages, err := filepath.Glob(filepath.Join(framework.Root(), "docs", "runbooks", "Tidekeeper*.md"))
	if err != nil {
		t.Fatal(err)
	}
	if len(pages) != len(all) {
		t.Errorf("%d runbooks for %d alerts", len(pages), len(all))
	}
}

// promtool finds nothing wrong with the alerts. Each alert fires in its case, and is quiet
// in similar ones.
func TestAlertsFire(t *testing.T) {
	file := rulesFile(t)
	promtool(t, "check", "rules", "--lint=all", "--lint-fatal", file)

	type expected struct {
		Labels      map[string]string `json:"exp_labels"`
		Annotations map[string]string `json:"exp_annotations"`
	}
	type check struct {
		Time   string     `json:"eval_time"`
		Name   string     `json:"alertname"`
		Alerts []expected `json:"exp_alerts"`
	}
	type input struct {
		Series string `json:"series"`
		Values string `json:"values"`
	}
	type story struct {
		Name     string  `json:"name"`
		Interval string  `json:"interval"`
		Input    []input `json:"input_series"`
		Checks   []check `json:"alert_rule_test"`
	}
	inputs := func(s series) (all []input) {
		for name, values := range s {
			all = append(all, input{name, values})
		}
		slices.SortFunc(all, func(a, b input) int { return cmp.Compare(a.Series, b.Series) })
		return all
	}
	var stories []story
	for name, r := range rules(t) {
		c := alertCases[name]
		e := expected{
			Labels:      map[string]string{"severity": r.Labels["severity"]},
			Annotations: map[string]string{"summary": c.summary, "runbook_url": r.Annotations["runbook_url"]},
		}
		for key, value := range c.labels {
			e.Labels[key] = value
		}
		stories = append(stories, story{name + " fires", "1m", inputs(c.fires), []check{{c.after, name, []expected{e}}}})
		for _, quiet := range c.quiet {
			s := story{Name: name + " is quiet", Interval: "1m", Input: inputs(quiet)}
			for _, at := range []string{"5m", "10m", "20m", "30m", "40m", "50m", "60m"} {
				s.Checks = append(s.Checks, check{at, name, []expected{}})
			}
			stories = append(stories, s)
		}
	}
	promtool(t, "test", "rules", writeYAML(t, filepath.Dir(file), "tests.yaml", map[string]any{
		"rule_files": []string{file}, "evaluation_interval": "1m", "tests": stories,
	}))
}
