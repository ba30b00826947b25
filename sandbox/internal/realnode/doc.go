// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package realnode runs real nodes: a kubelet, containerd, and the containers that they start.
//
// All processes of a node are descendants of a single process with its own PID, mount, network, UTS
// and IPC namespaces. When that process exits for any reason, the kernel kills all other processes
// and removes their mounts and network devices. The cgroups remain, and the sandbox removes them by
// name. A node's network is connected only to its gateway, which forwards connections from the node
// to the API server and from the API server to the node.
//
//	spec.go      the names, addresses and files of a node
//	check.go     the requirements on the machine
//	cgroup.go    creates and removes a node's cgroups
//	unified.go   version 2 cgroups, whose controllers are enabled from the root down
//	config.go    the configuration of the kubelet, containerd and pod networks
//	node.go      PID 1 of a node, which starts and restarts the other programs
//	mounts.go    a node's own directories, which replace directories of the machine
//	network.go   a node's addresses, and connections out of its network
//	gateway.go   connections to and from the API server
//	dns.go       the cluster's DNS names
//	reaper.go    waits for child processes and orphans
//	images.go    image archives, and their import into nodes
package realnode
