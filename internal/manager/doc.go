// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package manager builds the Tidekeeper manager and runs it. [Run] is the whole way
// from [Options] to a manager that has stopped:
//
//	Options.Validate → selection → RESTConfig → preflight → newManager → Start
//
//	options.go         the settings of the manager; options_groups.go their flags
//	controllers.go     the list of the controllers, and which of them --controllers chooses
//	selection.go       what the chosen controllers watch and index together
//	kubeconfig.go      how to reach the API server
//	preflight          what the cluster must have before a manager starts
//	certificate.go     the certificate of the metrics endpoint, read again without inotify
//	manager.go         scheme, client, probes, metrics, leader election
//	cache.go           what the shared cache keeps of each object; cache_pod.go of a pod, and
//	                   cache_pod_bounds.go the most of it
//	rights.go          the rights that are not those of a controller
//	logging.go         where logs go, and in which form
//	memory.go          bounds the memory of the initial lists, and returns it to the operating system
//
// docs/add-a-controller.md says how to add a controller.
package manager
