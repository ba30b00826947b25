// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package realnode runs real nodes: a kubelet, containerd and what they start.
//
// All of a node is below one process, in namespaces of its own for processes, mounts, the
// network and the host name. When that process ends, however it does, the kernel ends all
// the others, and with them go their mounts and network devices. Only cgroups are left,
// and are removed by name. The network of a node has no way out but its gateway, which
// passes on what is for the API server, and what the API server asks of the node.
//
//	spec.go      what a node is made of: names, addresses, files
//	check.go     what a machine must have
//	cgroup.go    the cgroups of a node, made and removed
//	unified.go   those of version 2, whose controllers are turned on from the root down
//	config.go    the configuration of the kubelet, containerd and the network of pods
//	node.go      the process of a node: starts the others, and starts them again
//	mounts.go    what the node sees of the machine's files
//	network.go   its addresses, and connections out of it
//	gateway.go   connections to and from the API server
//	dns.go       the names of the cluster
//	reaper.go    children and orphans of the process
//	images.go    images made of one program, and given to nodes
package realnode
