// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package workload has an adapter for each kind of workload that can be restarted.
//
// The restarts, the opt-in, the manager's watches, rights and cache, and the preview of the
// plugin range over [Kinds], so that all knowledge about a kind is in one place:
//
//	workload.go     the type of an adapter
//	kinds.go        the list of the kinds
//	state.go        the state of a workload, as a restart needs it
//	template.go     code shared by the kinds of the group apps
//	config.go       the ConfigMaps and Secrets that their pods use
//	bounds.go       the maximum size of the kept part of a workload
//	deployment.go
//	statefulset.go
//	daemonset.go
//	rollout.go      Argo's Rollout, an optional kind
//	scale.go        any other kind, by its scale subresource
//
// To add a kind, see "Add a kind of workload" in CONTRIBUTING.md.
package workload
