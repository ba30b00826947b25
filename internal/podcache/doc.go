// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package podcache keeps pods in little memory. It is client-go's own informer,
// with its reflector and its indexes; only what stands in its store is no Pod but
// a record of the few fields in which the pods of one workload differ, and a
// pointer to the rest, which they share.
//
// A Pod as a Go type takes more than 1 KiB even with every field empty, and the
// manager holds every pod of the cluster. Whoever reads or follows pods is handed
// whole ones, made when they are asked for. As of all that comes from a cache, they
// must not be changed: they share what they are made of.
//
//	record.go    a pod as a record, and back
//	common.go    what pods share, once
//	hydrator.go  pods of records, those of late made once
//	lister.go    a list of records, page by page
//	informer.go  an informer that keeps records
package podcache
