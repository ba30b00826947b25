// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package monitoring

// series maps the name and labels of each time series in a test to its values, one per minute, in
// promtool's notation: 0+1x9 is 0, 1, ... 9.
type series map[string]string

// alertCase holds time series for which an alert fires, and series for which it does not.
type alertCase struct {
	// fires holds time series for which the alert fires after the duration `after`, with the given
	// labels and summary.
	fires   series
	after   string
	labels  map[string]string
	summary string
	// quiet lists sets of time series for which the alert does not fire until then.
	quiet []series
}

// alertCases maps the name of each alert to its test case. The quiet series differ as little as
// possible from series for which the alert fires.
var alertCases = map[string]alertCase{
	"TidekeeperDown": {
		fires: series{`up{job="tidekeeper-metrics", instance="a"}`: "0x60"}, after: "6m",
		summary: "No manager of Tidekeeper can be scraped.",
		quiet: []series{
			{
				`up{job="tidekeeper-metrics", instance="a"}`: "0x60",
				`up{job="tidekeeper-metrics", instance="b"}`: "1x60",
			},
			// The manager is down for some minutes.
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
			// The metric comes from another program.
			{`leader_election_master_status{job="other", instance="a"}`: "0x60"},
		},
	},
	"TidekeeperReconcileErrors": {
		// An object is retried every 17 minutes.
		fires: series{reconcileErrors: "0x5 5x16 6x16 7x16 8x16 9x16 10x16"}, after: "60m",
		labels:  map[string]string{"controller": "nodepool"},
		summary: "The controller nodepool has been failing for 45 minutes.",
		// The API server was down for ten minutes.
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
			// A standby's queue stays long, while the leader's queue is empty from time to time.
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
			{`tidekeeper_nodepool_ready{pool="w", reason="EvictionBlocked", instance="a"}`: "0x10 _x10 0x10"},
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
			`tidekeeper_nodepool_nodes{pool="w", state="outdated", instance="a"}`:  "6x60",
			`tidekeeper_nodepool_nodes{pool="w", state="held_back", instance="a"}`: "2x60",
			`tidekeeper_nodepool_nodes{pool="w", state="emptying", instance="a"}`:  "1x60",
		},
		after: "31m", labels: map[string]string{"pool": "w"},
		summary: "3 nodes of the pool w have not matched its spec for 30 minutes.",
		quiet: []series{{
			`tidekeeper_nodepool_nodes{pool="w", state="outdated", instance="a"}`:  "5x60",
			`tidekeeper_nodepool_nodes{pool="w", state="held_back", instance="a"}`: "5x60",
			`tidekeeper_nodepool_nodes{pool="w", state="emptying", instance="a"}`:  "0x60",
		}, {
			`tidekeeper_nodepool_nodes{pool="w", state="outdated", instance="a"}`:  "5x60",
			`tidekeeper_nodepool_nodes{pool="w", state="held_back", instance="a"}`: "2x60",
			`tidekeeper_nodepool_nodes{pool="w", state="emptying", instance="a"}`:  "3x60",
		}},
	},
	"TidekeeperPoolWithoutHeadroom": {
		fires: series{
			`tidekeeper_nodepool_headroom{pool="w", instance="a"}`: "0x60",
			`tidekeeper_nodepool_headroom{pool="w", instance="b"}`: "0x60", // The standby has the same value.
		},
		after: "31m", labels: map[string]string{"pool": "w"},
		summary: "If a node or zone of the pool w is lost, some of its pods have no place to go.",
		quiet: []series{
			{`tidekeeper_nodepool_headroom{pool="w", instance="a"}`: "1x60"},
			// The headroom is sufficient again within half an hour.
			{`tidekeeper_nodepool_headroom{pool="w", instance="a"}`: "0x20 1x20 0x20"},
		},
	},
	"TidekeeperPoolNearlyFull": {
		fires: series{
			`tidekeeper_nodepool_resource{pool="w", kind="requested", resource="cpu", instance="a"}`:   "95x60",
			`tidekeeper_nodepool_resource{pool="w", kind="allocatable", resource="cpu", instance="a"}`: "100x60",
			// The standby has the same value.
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
		// One node is corrected every ten seconds.
		fires: series{`tidekeeper_nodepool_drift_corrections_total{pool="w", instance="a"}`: "0+6x60"}, after: "21m",
		labels:  map[string]string{"pool": "w"},
		summary: "Another client keeps reverting settings of the pool w on nodes.",
		// A thousand nodes are corrected once; another client edits a node every minute.
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
	"TidekeeperMaintenanceFailed": {
		fires: series{
			`tidekeeper_maintenance_nodes{maintenance="weekly", phase="Failed", instance="a"}`:   "0x5 2x55",
			`tidekeeper_maintenance_nodes{maintenance="weekly", phase="Draining", instance="a"}`: "1x60",
		},
		after: "10m", labels: map[string]string{"maintenance": "weekly"},
		summary: "2 nodes of the NodeMaintenance weekly could not be drained, or were not ready again in time.",
		quiet: []series{{
			`tidekeeper_maintenance_nodes{maintenance="weekly", phase="Failed", instance="a"}`:   "0x60",
			`tidekeeper_maintenance_nodes{maintenance="weekly", phase="Draining", instance="a"}`: "1x60",
		}},
	},
	"TidekeeperRestartFailed": {
		// The first failure creates the series.
		fires: series{`tidekeeper_restart_ticks_total{outcome="Failed", reason="Timeout", instance="a"}`: "0x5 1x55"}, after: "10m",
		labels:  map[string]string{"reason": "Timeout"},
		summary: "Scheduled restarts have failed within the hour: Timeout.",
		quiet:   []series{{`tidekeeper_restart_ticks_total{outcome="Skipped", reason="Suspended", instance="a"}`: "0+1x60"}},
	},
	"TidekeeperRestartMissed": {
		fires: series{`tidekeeper_restart_ticks_total{outcome="Missed", reason="BudgetExhausted", instance="a"}`: "0x5 1x55"}, after: "10m",
		labels:  map[string]string{"reason": "BudgetExhausted"},
		summary: "Scheduled restarts were missed within the hour: BudgetExhausted.",
		// Another manager becomes the leader, and its counter starts at 0.
		quiet: []series{{
			`tidekeeper_restart_ticks_total{outcome="Missed", reason="BudgetExhausted", instance="a"}`: "7x5 _x55",
			`tidekeeper_restart_ticks_total{outcome="Missed", reason="BudgetExhausted", instance="b"}`: "0x60",
			`tidekeeper_restart_ticks_total{outcome="Skipped", reason="Suspended", instance="b"}`:      "0+1x60",
		}},
	},
	"TidekeeperSchedulesStopped": {
		fires: series{
			`tidekeeper_restart_schedules{reason="FailureLimit", instance="a"}`: "3x60",
			// A standby reports 0.
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
			// A standby reports 0.
			`tidekeeper_restart_overdue{namespace="", instance="b"}`: "0x60",
		},
		after: "25m", labels: map[string]string{"namespace": "shop"},
		summary: "2 ScheduledRestarts have not succeeded for two of their own intervals, in the namespace shop.",
		quiet: []series{
			// A tick succeeds eventually.
			{`tidekeeper_restart_overdue{namespace="shop", instance="a"}`: "0x5 1x10 0x60"},
			{`tidekeeper_restart_overdue{namespace="", instance="a"}`: "0x60"},
		},
	},
	"TidekeeperNamespaceDeferred": {
		fires: series{
			`tidekeeper_namespace_deferred_reconciles{namespace="shop", instance="a"}`: "0x5 40x55",
			`tidekeeper_namespace_deferred_reconciles{namespace="", instance="a"}`:     "0x60",
			// A standby reports 0.
			`tidekeeper_namespace_deferred_reconciles{namespace="", instance="b"}`: "0x60",
		},
		after: "25m", labels: map[string]string{"namespace": "shop"},
		summary: "The objects of the namespace shop have used up their requests to the API server for 15 minutes, and are served late.",
		quiet: []series{
			// Hundreds of objects were created at the same time.
			{`tidekeeper_namespace_deferred_reconciles{namespace="shop", instance="a"}`: "0x5 900x10 0x60"},
			{`tidekeeper_namespace_deferred_reconciles{namespace="", instance="a"}`: "0x60"},
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
	"TidekeeperRestartStorm": {
		fires: series{
			storm + `, object="Secret tls", writer="cert-manager", instance="a"}`:                 "0x5 1x55",
			`tidekeeper_restart_storm{namespace="", name="", object="", writer="", instance="a"}`: "0x60",
			// A standby reports 0.
			`tidekeeper_restart_storm{namespace="", name="", object="", writer="", instance="b"}`: "0x60",
		},
		after:   "10m",
		labels:  map[string]string{"namespace": "shop", "name": "web", "object": "Secret tls", "writer": "cert-manager"},
		summary: "Changes of Secret tls keep coming, by cert-manager, so that shop/web is restarted as often as minIntervalSeconds allows.",
		quiet:   []series{{`tidekeeper_restart_storm{namespace="", name="", object="", writer="", instance="a"}`: "0x60"}},
	},
	"TidekeeperEvictionsRefused": {
		fires: series{
			`tidekeeper_restart_evictions_refused_seconds{instance="a"}`: "0x5 0+60x60",
			// A standby reports 0.
			`tidekeeper_restart_evictions_refused_seconds{instance="b"}`: "0x65",
		},
		after: "25m", summary: "The evictions of a restart have been refused for 19m 0s.",
		// One eviction is accepted every ten minutes.
		quiet: []series{{`tidekeeper_restart_evictions_refused_seconds{instance="a"}`: "0+60x10 0+60x10 0+60x10 0+60x10 0x20"}},
	},
	"TidekeeperRestartQueryFailing": {
		// A nightly restart is missed after a minute.
		fires: series{
			queries + `, result="Error", instance="a"}`: "0x5 6x60",
			queries + `, result="Open", instance="a"}`:  "9x65",
		},
		after: "12m", labels: map[string]string{"query": "alerts"},
		summary: "The query alerts fails, so that the restarts that wait for its answer are not started.",
		quiet: []series{
			// The query eventually succeeds, whether it returns results, which hold restarts back,
			// or none.
			{queries + `, result="Error", instance="a"}`: "0x5 6x60", queries + `, result="Open", instance="a"}`: "0x6 1x60"},
			{queries + `, result="Error", instance="a"}`: "0x5 6x60", queries + `, result="Closed", instance="a"}`: "0x6 1x60"},
			// The query failed earlier, and is no longer evaluated.
			{queries + `, result="Error", instance="a"}`: "6x65"},
		},
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

// Time series selectors that several cases use.
const (
	up              = `up{job="tidekeeper-metrics", instance="a"}`
	reconcileErrors = `controller_runtime_reconcile_errors_total{job="tidekeeper-metrics", controller="nodepool"}`
	depth           = `workqueue_depth{job="tidekeeper-metrics", controller="nodepool", name="nodepool"`
	queries         = `tidekeeper_restart_queries_total{query="alerts"`
	storm           = `tidekeeper_restart_storm{namespace="shop", name="web"`
	startup         = `tidekeeper_pod_startup_stage_seconds_bucket{pool="w", stage="containers_ready"`
)
