// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package podcount keeps the label pod-count of every ReplicaSet: how many pods
// it has.
//
//	$ kubectl get rs -L pod-count
//	NAME             DESIRED   CURRENT   READY   AGE   POD-COUNT
//	web-7d4b9c6f5d   3         3         3       2m    3
//
// A pod counts for the ReplicaSet that its controller owner reference names by
// UID, whatever its labels are. It counts from its creation until it has ended
// or is being deleted, as in the column CURRENT: a pod that terminates has its
// replacement already, and both together would be one pod too many.
//
// The label is written if it differs and never otherwise, and nothing else of
// the ReplicaSet is touched. Whoever writes another value there gets the count
// back. Two ReplicaSets are left alone: one that is being deleted, and one
// whose selector names the label itself, as another value would cut its
// Deployment off from it.
//
//	count.go          pure: which pods count, and the patch that says so
//	controller.go     carries it out for one ReplicaSet
//	watch.go          which events are worth a look
//	setup.go          adds it to the manager
//	observability.go  the label
package podcount
