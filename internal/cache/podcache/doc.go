// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package podcache decodes and stores pods with little memory and CPU time. It uses client-go's
// informer, including its reflector and indexes, but the informer's store holds records instead of
// Pods. A record holds the few fields in which the pods of a workload differ, and pointers to all
// other kept fields, which it shares with other records.
//
// A Pod as a Go type takes more than 1 KiB even if every field is empty, and the manager caches
// every pod of the cluster. Readers, indexes and event handlers receive Pods, which are restored
// from the records when needed. As with any cache, callers must not modify these Pods: they share
// memory with the records.
//
// Most of a pod's bytes belong to fields that the cache does not keep. Therefore this package reads
// lists and watches itself instead of leaving that to client-go. It removes the dropped fields from
// a pod's protobuf, and compares the remaining shared part with the shared parts of earlier pods.
// Only the first pod with a new shared part is decoded and transformed; for all later pods, only
// the fields in which they differ are read. If a response does not have the API server's usual
// protobuf encoding, client-go decodes it. Nodes are read in the same way, but are stored as Nodes.
//
//	informer.go   an informer that stores records
//	record.go     the record of a pod, and the conversion in both directions
//	intern.go     interning of equal values
//	restore.go    restores Pods from records, with a cache of recent Pods
//	workloads.go  queries of a workload's pods, without building Pods
//	kinds.go      the numbers of equal pods by node, without building Pods
//	facts.go      the fields that decide whether a pod blocks a drain, and queries of them by node
//	list.go       the lister: the initial list, page by page, and the watch
//	convert.go    converts events decoded by client-go to records
//	source.go     requests for pages and watches, and the fallback to client-go
//	stream.go     a watch that decodes its events from a response body
//	scan.go       reads the fields in which a workload's pods differ from protobuf
//	decode.go     builds a record from a pod's protobuf
//	verify.go     the comparison with objects decoded by client-go
//	metrics.go    the metrics
package podcache
