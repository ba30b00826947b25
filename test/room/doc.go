// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package room compares answers about room with the plugins of the scheduler, in thousands of random
// clusters and without an API server. It is a module of its own, so that the other tests do not need
// the source of Kubernetes. A sample of the worlds is compared with kube-scheduler itself, on a
// sandbox.
//
//	world.go            a random cluster, and the pod whose copies are to be placed
//	volumes.go          the world's storage objects, and the running pods that use them
//	volumes_copy.go     the volumes of the pod whose copies are to be placed
//	oracle.go           places copies by the scheduler's plugins
//	binder.go           creates and binds the volumes of placed copies
//	preemption.go       makes room for a pod by the scheduler's plugin for preemption
//	preemption_test.go  the plugin evicts the pods that capacity names
//	room_test.go        as many copies are placed as capacity says
//	sample_test.go      places copies by kube-scheduler itself
//	sample_volumes_test.go  the volumes on the sandbox
//	arithmetic_test.go  simpler arithmetic, for comparison
package room
