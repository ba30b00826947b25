// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package cluster runs the control plane of a sandbox, which keeps its files in a data directory,
// and lets other processes query and control it.
//
//	run.go         starts components and nodes in order, and runs the sandbox
//	components.go  the command line of each component, given the options
//	realnodes.go   nodes with a real kubelet
//	release.go     the Kubernetes release of the control plane
//	control.go     the control socket's server, and the status of a sandbox
//	client.go      the control socket's client: status, components, stop
//	dir.go         the names of the files in the data directory
//	copy.go        copies directories
//	marker.go      the file that marks a directory as a sandbox's
//	lock.go        the lock that limits a directory to a single sandbox
//	settings.go    the ports, which the next run reuses
//	sockets.go     the paths of the Unix sockets
//	credentials.go certificates, keys, and the components' kubeconfigs
//	access.go      clients for the API server and etcd
//	owner.go       the process that a sandbox must not outlive
package cluster
