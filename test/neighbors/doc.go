// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package neighbors runs software that many clusters have beside Tidekeeper, as it is published,
// on the sandbox.
//
//	descheduler_test.go          the descheduler evicts by the taints and labels that pools put on nodes
//	metrics_server_test.go       what nodes and pods use, by metrics-server and kubectl top
//	prometheus_operator_test.go  config/monitoring, by Prometheus Operator and Prometheus
package neighbors
