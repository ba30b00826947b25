// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package podstartup implements the controller "pod-startup": it observes the startup of each
// pod once, in histograms by stage and node pool. internal/pods/podtimeline computes the startup of
// a pod.
//
//	observer.go    decides which pods are counted, and when
//	pools.go       the node pool of a node
//	metrics.go     the histograms
//	setup.go       adds the controller to the manager
//	definition.go  declares the controller to the manager
package podstartup
