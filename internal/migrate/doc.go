// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package migrate converts the objects of the two original operators into Tidekeeper's objects:
// NodePools of nodes.lailin.xyz, Erus of mtsre.meitu.com, and Deployments that request an Eru with
// an annotation.
//
// The conversion is a pure function of its input objects. Each part of an original object ends up
// in one of three places: in an object to apply, in a command that adopts existing objects in the
// cluster, or in a remark that explains why it could not be converted.
//
//	migrate.go   input objects, and the order of the conversion
//	nodepool.go  NodePools
//	eru.go       Erus, and Deployments that opt in
//	cron.go      schedules in the original operator's format
//	metadata.go  names, labels, annotations, and keys that a pool may not set
//	command.go   manual steps as kubectl commands
//	spec.go      strict decoding of the specs
//	remark.go    remarks about omitted fields
package migrate
