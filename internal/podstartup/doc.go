// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package podstartup is the controller "pod-startup": it observes the start-up of each
// pod once, in histograms by stage and node pool. How a pod started is computed by
// internal/podtimeline.
//
//	observer.go    which pods are counted, and when
//	pools.go       the node pool of a node
//	metrics.go     the histograms
//	setup.go       adds the controller to the manager
//	definition.go  what the manager needs to know to run the controller
package podstartup
