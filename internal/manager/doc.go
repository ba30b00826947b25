// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package manager builds and runs the Tidekeeper manager. [Run] takes [Options], and returns after
// the manager has stopped. Its steps are:
//
//	Options.Validate → selection → RESTConfig → preflight → newManager → Start
//
//	options.go         the manager's options; their flags are in options_groups.go
//	controllers.go     the list of all controllers, and the choice by --controllers
//	selection.go       the watches and indexes that the chosen controllers share
//	kubeconfig.go      the connection to the API server
//	preflight          checks the manager's requirements on the cluster before it starts
//	certificate.go     the metrics endpoint's certificate, which is reloaded without inotify
//	manager.go         the manager with its scheme, client, probes and metrics
//	election.go        the leader election lock, which publishes the holder's settings
//	cache.go           the fields that the shared cache keeps of each object
//	cache_pod.go       the fields that the shared cache keeps of a pod
//	cache_pod_bounds.go  the bounds of a pod's cached fields
//	rights.go          the manager's own API rights
//	logging.go         the format and destination of logs
//	memory.go          limits memory during the initial lists, and returns it afterwards
//
// To add a controller, see docs/add-a-controller.md.
package manager
