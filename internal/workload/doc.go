// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package workload provides an adapter for each kind of workload that can be restarted.
//
// Components that support all kinds iterate over [Kinds]: restarts, the opt-in, the manager's
// watches, permissions and cache, and the kubectl plugin's preview. Everything specific to a kind
// is in its adapter:
//
//	workload.go     the type Kind, an adapter
//	kinds.go        the list of all kinds
//	state.go        the part of a workload's state that restarts depend on
//	progress.go     when a rollout last made progress
//	template.go     code shared by the kinds of the API group apps
//	config.go       the ConfigMaps and Secrets that a workload's pods use
//	bounds.go       limits for the fields of a workload that the cache keeps
//	deployment.go
//	statefulset.go
//	daemonset.go
//	rollout.go      Argo's Rollout, an optional kind
//	scale.go        workloads of any other kind, through their scale subresource
//
// To add a kind, see "Add a kind of workload" in CONTRIBUTING.md.
package workload
