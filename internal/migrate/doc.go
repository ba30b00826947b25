// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package migrate turns the objects of the two operators that Tidekeeper
// follows into ours: NodePools of nodes.lailin.xyz, Erus of mtsre.meitu.com, and
// the Deployments that ask for an Eru by an annotation.
//
// It is a plain function of what was read. Each part of an original object ends up
// in one of three places: in an object to apply, in a command that hands over what
// is already in the cluster, or in a remark that says why it is in neither.
//
//	migrate.go   what is read, and in what order
//	nodepool.go  NodePools
//	eru.go       Erus, and Deployments that opt in
//	cron.go      schedules as the original project writes them
//	metadata.go  names, labels, annotations, and keys that a pool may not set
//	command.go   commands of kubectl
//	spec.go      their specs, read strictly
//	remark.go    what is left out, and why
package migrate
