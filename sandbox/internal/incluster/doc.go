// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package incluster runs a program on this machine as if it were the container of a pod in the
// sandbox.
//
// The package uses two processes. The user starts the outer process, which starts the inner process
// in its own namespaces, forwards signals to it and exits with its exit code. The inner process
// creates the Pod and the files that the program expects, starts the program, and undoes these
// changes when the program has exited, even if the outer process was killed.
//
//	namespaces.go   the outer process, which starts the inner process
//	run.go          the steps of the inner process
//	cleanups.go     undoes the changes that were made for the program
//	process.go      the program: its start, signals and exit
//	deployment.go   the Deployment whose container the program replaces
//	pod.go          the Pod and the ServiceAccount in the API server
//	environment.go  the program's environment variables
//	exec.go         a program that another process starts repeatedly
//	network.go      the network namespace of such a program
//	resolver.go     its addresses and names of the cluster
//	sweep.go        the process that kills the processes left behind by such programs
//	mounts.go       directories that only the program and this process see
//	token.go        the ServiceAccount's files, whose token is renewed
//	webhooks.go     redirects webhooks from a Service to the program
//	clientconfig.go the webhook configuration in an object
package incluster
