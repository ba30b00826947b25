// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package query runs the Prometheus queries that decide whether a restart may start. The
// administrator configures the address of the Prometheus server and the queries; tenants contribute
// only the names of namespaces and workloads.
//
//	config.go      the file that configures the Prometheus server and the queries
//	template.go    replaces $namespace and $name in a query
//	prometheus.go  sends a query, with limits on the time and size of the response
//	evaluator.go   runs the queries of each restart in the background
//	metrics.go     the metrics of queries
//
// Any result other than an empty result, including an error, keeps a restart from starting.
package query
