// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package main

// A standby manager also watches the node pools, so that a metric about the cluster has the same
// value in all managers. Therefore queries of gauges use max, whereas counters are summed over all
// managers.

var fleet = dashboard{
	uid: "tidekeeper", title: "Tidekeeper", pools: true,
	rows: []row{
		{"Node pools", []panel{
			{title: "Pools that are not ready", kind: stat, queries: []query{
				{"", `sum(min by (pool, reason) (tidekeeper_nodepool_ready{pool=~"$pool"}) == bool 0)`},
			}},
			{title: "Status", kind: stat, queries: []query{
				{"{{pool}}: {{reason}}", `max by (pool, reason) (tidekeeper_nodepool_ready{pool=~"$pool"})`},
			}},
			{title: "Utilization: requested of allocatable", unit: "percentunit", queries: []query{
				{"{{pool}} {{resource}}", `max by (pool, resource) (tidekeeper_nodepool_resource{kind="requested", pool=~"$pool"}) / (max by (pool, resource) (tidekeeper_nodepool_resource{kind="allocatable", pool=~"$pool"}) > 0)`},
			}},
			{title: "Free of usable", unit: "percentunit", queries: []query{
				{"{{pool}} {{resource}}", `max by (pool, resource) (tidekeeper_nodepool_resource{kind="free", pool=~"$pool"}) / (max by (pool, resource) (tidekeeper_nodepool_resource{kind="usable", pool=~"$pool"}) > 0)`},
			}},
			{title: "Lost, of allocatable", unit: "percentunit", queries: []query{
				{"{{pool}} {{resource}}: {{cause}}", `max by (pool, cause, resource) (tidekeeper_nodepool_lost{pool=~"$pool"}) / on (pool, resource) group_left () (max by (pool, resource) (tidekeeper_nodepool_resource{kind="allocatable", pool=~"$pool"}) > 0)`},
			}},
			{title: "Largest fit: CPU", queries: []query{
				{"{{pool}}", `max by (pool) (tidekeeper_nodepool_largest_fit{resource="cpu", pool=~"$pool"})`},
			}},
			{title: "Largest fit: memory", unit: "bytes", queries: []query{
				{"{{pool}}", `max by (pool) (tidekeeper_nodepool_largest_fit{resource="memory", pool=~"$pool"})`},
			}},
			{title: "Headroom: 1 is enough", kind: stat, queries: []query{
				{"{{pool}}", `min by (pool) (tidekeeper_nodepool_headroom{pool=~"$pool"})`},
			}},
			{title: "Nodes that could not be drained", queries: []query{
				{"{{pool}}", `max by (pool) (tidekeeper_nodepool_drain_blocked_nodes{pool=~"$pool"})`},
			}},
			{title: "Pods that would not leave a drain", queries: []query{
				{"{{pool}}: {{reason}}", `max by (pool, reason) (tidekeeper_nodepool_drain_blockers{pool=~"$pool"}) > 0`},
			}},
			{title: "Nodes by state", queries: []query{
				{"{{pool}} {{state}}", `max by (pool, state) (tidekeeper_nodepool_nodes{pool=~"$pool"})`},
			}},
			{title: "Patches of nodes", unit: "reqps", queries: []query{
				{"{{result}}", `sum by (result) (rate(tidekeeper_nodepool_node_writes_total[$__rate_interval]))`},
			}},
			{title: "Restored on nodes", unit: "ops", queries: []query{
				{"{{pool}}", `sum by (pool) (rate(tidekeeper_nodepool_drift_corrections_total{pool=~"$pool"}[$__rate_interval]))`},
			}},
		}},
		{"Scheduled restarts", []panel{
			{title: "ScheduledRestarts by status", queries: []query{
				{"{{reason}}", `max by (reason) (tidekeeper_restart_schedules)`},
			}},
			{title: "In progress", queries: []query{
				{"in progress", `max(tidekeeper_restart_active)`},
				{"waiting for the budget", `max(tidekeeper_restart_waiting_for_budget)`},
				{"budget", `max(tidekeeper_restart_budget)`},
			}},
			{title: "Outcomes", queries: []query{
				{"{{outcome}}", `sum by (outcome) (increase(tidekeeper_restart_ticks_total[$__rate_interval]))`},
			}},
			{title: "Not succeeded, by reason", queries: []query{
				{"{{outcome}} {{reason}}", `sum by (outcome, reason) (increase(tidekeeper_restart_ticks_total{outcome!="Succeeded"}[$__rate_interval]))`},
			}},
			{title: "Overdue: no success for two intervals", queries: []query{
				{"{{namespace}}", `max by (namespace) (tidekeeper_restart_overdue)`},
			}},
			{title: "How late restarts start", unit: "s", queries: []query{
				{"median", `histogram_quantile(0.5, sum by (le) (rate(tidekeeper_restart_start_lateness_seconds_bucket[$__rate_interval])))`},
				{"99th percentile", `histogram_quantile(0.99, sum by (le) (rate(tidekeeper_restart_start_lateness_seconds_bucket[$__rate_interval])))`},
			}},
			{title: "How long restarts take (90th percentile)", unit: "s", queries: []query{
				{"{{kind}}", `histogram_quantile(0.9, sum by (kind, le) (rate(tidekeeper_restart_duration_seconds_bucket[$__rate_interval])))`},
			}},
			{title: "Evictions of restarts", queries: []query{
				{"{{result}}", `sum by (result) (increase(tidekeeper_restart_evictions_total[$__rate_interval]))`},
			}},
			{title: "Queries before restarts", queries: []query{
				{"{{query}} {{result}}", `sum by (query, result) (increase(tidekeeper_restart_queries_total[$__rate_interval]))`},
			}},
		}},
		{"Pod start-up", []panel{
			{title: "Pods that became ready", unit: "ops", queries: []query{
				{"{{pool}}", `sum by (pool) (rate(tidekeeper_pod_startup_stage_seconds_count{stage="ready", pool=~"$pool"}[$__rate_interval]))`},
			}},
			{title: "Duration of each stage (90th percentile)", unit: "s", queries: []query{
				{"{{pool}} {{stage}}", `histogram_quantile(0.9, sum by (pool, stage, le) (rate(tidekeeper_pod_startup_stage_seconds_bucket{pool=~"$pool"}[$__rate_interval])))`},
			}},
		}},
	},
}

var manager = dashboard{
	uid: "tidekeeper-manager", title: "Tidekeeper / Manager",
	rows: []row{
		{"Managers", []panel{
			{title: "Up", kind: stat, queries: []query{{"{{instance}}", `up{` + job + `}`}}},
			{title: "Leader", kind: stat, queries: []query{{"{{instance}}", `max by (instance) (leader_election_master_status{` + job + `})`}}},
			{title: "CPU", unit: "percentunit", queries: []query{{"{{instance}}", `rate(process_cpu_seconds_total{` + job + `}[$__rate_interval])`}}},
			{title: "Memory", unit: "bytes", queries: []query{
				{"{{instance}} resident", `process_resident_memory_bytes{` + job + `}`},
				{"{{instance}} heap", `go_memstats_heap_inuse_bytes{` + job + `}`},
			}},
		}},
		{"Controllers", []panel{
			{title: "Reconciles", unit: "ops", queries: []query{
				{"{{controller}}", `sum by (controller) (rate(controller_runtime_reconcile_total{` + job + `}[$__rate_interval]))`},
			}},
			{title: "Errors", unit: "ops", queries: []query{
				{"{{controller}}", `sum by (controller) (rate(controller_runtime_reconcile_errors_total{` + job + `}[$__rate_interval]))`},
			}},
			{title: "Duration of reconciles (99th percentile)", unit: "s", queries: []query{
				{"{{controller}}", `histogram_quantile(0.99, sum by (controller, le) (rate(controller_runtime_reconcile_time_seconds_bucket{` + job + `}[$__rate_interval])))`},
			}},
			{title: "Queue", queries: []query{
				{"{{controller}}", `sum by (controller) (workqueue_depth{` + job + `})`},
			}},
			{title: "Wait in the queue (99th percentile)", unit: "s", queries: []query{
				{"{{controller}}", `histogram_quantile(0.99, sum by (controller, le) (rate(workqueue_queue_duration_seconds_bucket{` + job + `}[$__rate_interval])))`},
			}},
			{title: "Longest running reconcile", unit: "s", queries: []query{
				{"{{controller}}", `max by (controller) (workqueue_longest_running_processor_seconds{` + job + `})`},
			}},
			{title: "Requests to the API server", unit: "reqps", queries: []query{
				{"{{method}} {{code}}", `sum by (method, code) (rate(rest_client_requests_total{` + job + `}[$__rate_interval]))`},
			}},
		}},
	},
}

// job selects the metrics of Tidekeeper's managers by the name of their Service. Other controllers
// have metrics with the same names.
const job = `job="tidekeeper-metrics"`
