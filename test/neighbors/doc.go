// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package neighbors runs software that many clusters have in addition to Tidekeeper, as published,
// on the sandbox. Only the main package of cert-manager is replaced.
//
//	beside_test.go               the manager, the descheduler and cert-manager in parallel, during constant changes
//	beside_audit_test.go         the requests that the API server receives in beside_test.go
//	cert_manager_test.go         installs cert-manager, and reports the issued certificates
//	cert_manager_faults_test.go  cert-manager behind the fault proxy
//	descheduler_test.go          the descheduler evicts pods because of the taints and labels that pools set on nodes
//	metrics_server_test.go       the usage of nodes and pods in kubectl top, from metrics-server
//	prometheus_operator_test.go  config/monitoring with Prometheus Operator and Prometheus
package neighbors
