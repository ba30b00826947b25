// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package workload has an adapter for each kind of workload that can be restarted.
//
// The restarts, the opt-in, the manager's watches, rights and cache, and the preview
// of the plugin range over [Kinds], so that what they know of a kind is in one place:
//
//	workload.go     what an adapter consists of
//	kinds.go        the list of the kinds
//	state.go        what a restart needs to know about a workload
//	template.go     what the kinds of the group apps have in common
//	config.go       what their pods use of ConfigMaps and Secrets
//	deployment.go
//	statefulset.go
//	daemonset.go
//	rollout.go      Argo's Rollout, an optional kind
//	scale.go        any other kind, by its scale subresource
//
// To add a kind, see "Add a kind of workload" in CONTRIBUTING.md.
package workload
