// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package podcache keeps pods in little memory, and reads them with little work. It is client-go's
// informer, with its reflector and its indexes, but its store holds records instead of Pods: a
// record has the few fields in which the pods of one workload differ, and pointers to the others,
// which they share.
//
// A Pod as a Go type takes more than 1 KiB even with every field empty, and the manager
// holds every pod of the cluster. Readers, indexes and event handlers receive Pods,
// restored from the records when needed. Like all objects from a cache, these must not
// be modified: they share memory with the records.
//
// Most of a pod's bytes are of fields that the cache does not keep. So the lists and the watch are
// read here and not by client-go: what is not kept is cut out of the bytes of a pod, and what is
// left is compared with that of the pods before it. Only if no other has the same in common is the
// pod decoded, transformed and made into a record; else its record is made of the few bytes that
// are its own. Whatever is not the protobuf that an API server sends is left to client-go. Nodes
// are read in the same way, but for the records.
//
//	informer.go   an informer that stores records
//	record.go     a pod as a record, and back
//	intern.go     one copy of values that are equal
//	restore.go    Pods from records, the recent ones only once
//	workloads.go looks at the pods of a workload, without Pods
//	list.go       the initial list, page by page, and the watch
//	convert.go    records from the events that client-go decodes
//	source.go     requests for pages and watches; when client-go has to decode
//	stream.go     a watch
//	scan.go       what is a pod's own, from its bytes
//	decode.go     a record from the bytes of a pod
package podcache
