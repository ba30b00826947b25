// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package bench measures scheduled restarts on a real control plane, with the
// manager as it is released, beside a cron controller that keeps its timers in
// memory. make bench-restart prints the figures. As a test it is small, and
// asserts only what is no matter of time.
package bench
