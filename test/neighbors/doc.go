// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package neighbors runs software that many clusters have beside Tidekeeper, as it is published,
// on the sandbox. Of cert-manager that is all but the main package.
//
//	beside_test.go               the manager, the descheduler and cert-manager side by side, while all changes
//	beside_audit_test.go         what the API server was asked for meanwhile
//	cert_manager_test.go         installs cert-manager, and says what is issued
//	cert_manager_faults_test.go  cert-manager behind the fault proxy
//	descheduler_test.go          the descheduler evicts by the taints and labels that pools put on nodes
//	metrics_server_test.go       what nodes and pods use, by metrics-server and kubectl top
//	prometheus_operator_test.go  config/monitoring, by Prometheus Operator and Prometheus
package neighbors
