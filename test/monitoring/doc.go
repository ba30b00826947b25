// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package monitoring tests the alerts and dashboards of config/monitoring with promtool, and with a
// Prometheus that scrapes a manager in a sandbox. It also tests the queries that a manager sends to
// Prometheus before restarts.
package monitoring
