// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package query asks a Prometheus whether a restart may be started. Its address and the
// queries are the manager's operator's; tenants have no part in them but the names of their
// namespaces and workloads.
//
//	config.go      the file that names the Prometheus and the queries
//	template.go    $namespace and $name in a query
//	prometheus.go  one query, with bounds on what the answer may cost
//	evaluator.go   the queries about each restart, asked beside the reconciles
//	metrics.go     its metrics
//
// Whatever is not the answer that there is no result keeps a restart from being started.
package query
