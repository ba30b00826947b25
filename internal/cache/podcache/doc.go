// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package podcache stores pods in little memory and decodes them at little cost. It extends
// client-go's informer, with its reflector and indexes, by a store of records instead of Pods:
// a record has the few fields in which the pods of a workload differ, and pointers to the other
// fields, which the pods share.
//
// A Pod as a Go type takes more than 1 KiB even with every field empty, and the manager caches
// every pod of the cluster. Readers, indexes and event handlers receive Pods, restored from the
// records when needed. Like all objects from a cache, these Pods must not be modified: they
// share memory with the records.
//
// Most bytes of a pod belong to fields that the cache does not keep. So this package, and not
// client-go, reads lists and watches: it removes the dropped fields from the protobuf of a pod,
// and compares the shared part of the rest with previous pods. Only the first pod with a new
// shared part is decoded, transformed and made into a record; for all others, only their own
// few fields are read. Answers in any other encoding than the API server's protobuf are left to
// client-go. Nodes are read in the same way, but stored as Nodes.
//
//	informer.go   an informer that stores records
//	record.go     a pod as a record, and back
//	intern.go     interning of equal values
//	restore.go    Pods from records, with a cache of recent Pods
//	workloads.go queries of the pods of a workload, without building Pods
//	list.go       the initial list, page by page, and the watch
//	convert.go    records from the events that client-go decodes
//	source.go     requests for pages and watches, and the fallback to client-go
//	stream.go     a watch
//	scan.go       the fields that differ between pods, read from the protobuf
//	decode.go     a record from the protobuf of a pod
//	verify.go     the comparison with what client-go decodes
//	metrics.go    the metrics
package podcache
