// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package evictionresponder responds to Evictions of the API group lifecycle.k8s.io: a pod whose
// eviction would take its Deployment down is moved by a restart, and all other pods are left to the
// next responder.
//
// All state is in the status of the Eviction and in the ScheduledRestart that requests the restart,
// so a crash, a retry or a second leader restarts nothing twice: the restart is identified by the
// responder's start time. The package decision makes the decisions.
//
//	definition.go  declares the controller "eviction-responder" to the manager
//	setup.go       the watches
//	controller.go  the reconciler of Evictions
//	facts.go       gathers the facts about an Eviction
//	sweep.go       deletes ScheduledRestarts that no Eviction needs
//	metrics.go     the metric
package evictionresponder
