// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package realnode runs real nodes: a kubelet, containerd and the containers that they start.
//
// All processes of a node are below a single process, in namespaces of its own for processes,
// mounts, the network and the host name. When that process ends, however it does, the kernel ends
// all the others, and removes their mounts and network devices. Only cgroups are left, and are
// removed by name. The network of a node has no way out but its gateway, which forwards connections
// to the API server, and from the API server to the node.
//
//	spec.go      the names, addresses and files of a node
//	check.go     the requirements of a machine
//	cgroup.go    the cgroups of a node, made and removed
//	unified.go   cgroups of version 2, whose controllers are turned on from the root down
//	config.go    the configuration of the kubelet, containerd and the network of pods
//	node.go      the process of a node: starts the others, and starts them again
//	mounts.go    the directories that a node has of its own
//	network.go   its addresses, and connections out of it
//	gateway.go   connections to and from the API server
//	dns.go       the names of the cluster
//	reaper.go    children and orphans of the process
//	images.go    images of a single program or of an archive, and their import into nodes
package realnode
