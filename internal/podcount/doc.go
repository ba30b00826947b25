// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package podcount is the controller "pod-count": it keeps the label pod-count of every
// ReplicaSet equal to the number of pods that the ReplicaSet has.
//
//	$ kubectl get rs -L pod-count
//	NAME             DESIRED   CURRENT   READY   AGE   POD-COUNT
//	web-7d4b9c6f5d   3         3         3       2m    3
//
// A pod counts for the ReplicaSet that its controller reference names by UID, whatever
// the labels of the pod are. It counts from its creation until it ends or is deleted,
// as in the column CURRENT: a terminating pod has been replaced already, and the two
// together would be one pod too many.
//
// The label is written only if it differs, and nothing else of the ReplicaSet is
// touched. If another client changes the value, it is set back. Two kinds of ReplicaSet
// are left alone: those being deleted, and those whose selector contains the label,
// because another value would detach such a ReplicaSet from its Deployment.
//
//	count.go       pure: which pods count, and the patch that sets the label
//	controller.go  the watches, and the reconciler of one ReplicaSet
//	definition.go  what the manager needs to know to run the controller
package podcount
