// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package manager builds the Tidekeeper manager and runs it. [Run] is the whole way
// from [Options] to a manager that has stopped:
//
//	Options.Validate → selection → RESTConfig → preflight → newManager → Start
//
//	options.go         the options of the manager; options_groups.go their flags
//	controllers.go     the list of the controllers, and the choice by --controllers
//	selection.go       the watches and indexes that the chosen controllers share
//	kubeconfig.go      the connection to the API server
//	preflight          the requirements on the cluster, checked before a manager starts
//	certificate.go     the certificate of the metrics endpoint, read again without inotify
//	manager.go         scheme, client, probes, metrics
//	election.go        the lock of the leader election, which publishes settings
//	cache.go           the fields that the shared cache keeps of each object; cache_pod.go of a pod,
//	                   cache_pod_bounds.go their bounds
//	rights.go          the rights of the manager itself
//	logging.go         the format and destination of logs
//	memory.go          bounds the memory of the initial lists, and returns it to the operating system
//
// To add a controller, see docs/add-a-controller.md.
package manager
