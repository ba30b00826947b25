// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package query asks a Prometheus whether a restart may start. Address and queries are the administrator's;
// tenants only contribute the names of namespaces and workloads.
//
//	config.go      the file that names the Prometheus and the queries
//	template.go    $namespace and $name in a query
//	prometheus.go  one query, with bounds on what the answer may cost
//	evaluator.go   the queries about each restart, asked beside the reconciles
//	metrics.go     its metrics
//
// Any answer other than an empty result keeps a restart from starting.
package query
