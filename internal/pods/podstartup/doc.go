// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package podstartup implements the controller "pod-startup". It observes the startup of each pod
// once, in histograms by stage and node pool. The package internal/pods/podtimeline computes the
// startup.
//
//	observer.go    decides whether and when a pod is counted
//	pools.go       finds the node pool of a node
//	metrics.go     the histograms
//	setup.go       adds the controller to the manager
//	definition.go  declares the controller to the manager
package podstartup
