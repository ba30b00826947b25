// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package podcache keeps pods in little memory. It is client-go's informer, with its
// reflector and its indexes, but its store holds records instead of Pods: a record has
// the few fields in which the pods of one workload differ, and pointers to the others,
// which they share.
//
// A Pod as a Go type takes more than 1 KiB even with every field empty, and the manager
// holds every pod of the cluster. Readers, indexes and event handlers receive Pods,
// restored from the records when needed. Like all objects from a cache, these must not
// be modified: they share memory with the records.
//
//	record.go    a pod as a record, and back
//	intern.go    one copy of values that are equal
//	restore.go   Pods from records, the recent ones only once
//	list.go      the initial list, page by page
//	informer.go  an informer that stores records
package podcache
