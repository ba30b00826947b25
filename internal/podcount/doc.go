// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package podcount implements the controller "pod-count": it keeps the label pod-count of every
// ReplicaSet equal to the number of its pods.
//
//	$ kubectl get rs -L pod-count
//	NAME             DESIRED   CURRENT   READY   AGE   POD-COUNT
//	web-7d4b9c6f5d   3         3         3       2m    3
//
// A pod counts for the ReplicaSet in its controller reference, by UID, whatever the labels of
// the pod. It counts from its creation until it ends or is deleted, as in the column CURRENT: a
// terminating pod has already been replaced, and counting both would be one pod too many.
//
// The label is written only if it differs, and no other field of the ReplicaSet is changed. If
// another client changes the value, it is restored. ReplicaSets that are being deleted are not
// labelled, nor ReplicaSets whose selector contains the label, since another value would detach
// them from their Deployment.
//
//	count.go       pure: the count, and the patch that sets the label
//	controller.go  the watches, and the reconciler
//	definition.go  declares the controller to the manager
package podcount
