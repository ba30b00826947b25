// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package incluster runs a program of this machine as if it were the container of a pod of the
// sandbox.
//
// This takes two processes. The outer process, which the user starts, starts the inner process in
// namespaces of its own, passes signals on to it and ends with its exit code. The inner process
// makes the Pod and the files that the program expects, starts the program, and undoes these changes
// when the program has ended, even if the outer process was killed.
//
//	namespaces.go   the outer process, and how it starts the inner process
//	run.go          the inner process, step by step
//	cleanups.go     undoes the changes that were made for the program
//	process.go      the program: its start, signals and end
//	deployment.go   the Deployment whose container the program is
//	pod.go          the Pod and the ServiceAccount in the API server
//	environment.go  the environment variables
//	exec.go         a program that is started again and again, from a single process
//	network.go      the network of such a program
//	sweep.go        the process that ends remaining processes of such programs
//	mounts.go       directories that only the program and this process see
//	token.go        the files of the service account, renewed in time
//	webhooks.go     webhooks reach the program instead of a Service
//	clientconfig.go the configuration of webhooks in an object
package incluster
