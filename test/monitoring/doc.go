// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package monitoring tests the alerts and dashboards of config/monitoring: by
// promtool, and by a Prometheus that scrapes a manager on the sandbox.
package monitoring
