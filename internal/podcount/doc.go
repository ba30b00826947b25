// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package podcount implements the controller "pod-count". It keeps the label pod-count of every
// ReplicaSet equal to the number of the ReplicaSet's pods.
//
//	$ kubectl get rs -L pod-count
//	NAME             DESIRED   CURRENT   READY   AGE   POD-COUNT
//	web-7d4b9c6f5d   3         3         3       2m    3
//
// A pod counts for the ReplicaSet whose UID is in the pod's controller reference, regardless of the
// pod's labels. As in the column CURRENT, it counts from its creation until it terminates or is
// deleted: a pod that is being deleted has already been replaced, so counting both pods would be
// one too many.
//
// The label is written only if its value differs, and no other field of the ReplicaSet is changed.
// If another client changes the value, the controller restores it. It does not label ReplicaSets
// that are being deleted, nor ReplicaSets whose selector contains the label, because another value
// would detach them from their Deployment.
//
//	count.go       counts pods and builds the patch of the label, as pure functions
//	controller.go  the watches and the reconciler
//	definition.go  declares the controller to the manager
package podcount
