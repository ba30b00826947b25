// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package cluster runs the control plane of a sandbox, which keeps its files in a data directory,
// and lets other processes query and control it.
//
//	run.go         a run: the order in which components and nodes are started
//	components.go  the plan: the arguments of each component for the options
//	realnodes.go   nodes with a real kubelet
//	release.go     the release of Kubernetes that runs
//	control.go     the server of the control socket, and the status of a sandbox
//	client.go      the client of the control socket: status, components, stop
//	dir.go         the names of the files in the data directory
//	copy.go        a copy of a directory
//	marker.go      the file by which a directory is known as a sandbox's
//	lock.go        the lock by which a directory has a single sandbox
//	settings.go    the ports, which the next run gets again
//	sockets.go     the paths of the sockets
//	credentials.go certificates, keys and the kubeconfigs of components
//	access.go      connections to the API server and to etcd
//	owner.go       the process that a sandbox does not outlive
package cluster
