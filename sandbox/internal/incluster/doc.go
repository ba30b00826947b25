// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package incluster runs a program of this machine as if it were the container of a
// pod of the sandbox.
//
// Two processes do it. The first one, which the user starts, only starts the second one
// in namespaces of its own, passes signals on to it and ends with its exit code. The
// second one makes the Pod and the files that the program expects, starts the program,
// and takes everything back when the program has ended. It does so as well when the
// first one is killed, which nothing in that one could.
//
//   - namespaces.go: the first process, and how it starts the second one
//   - run.go: the second process, step by step
//   - cleanups.go: undoes the changes that were made for the program
//   - process.go: the program: its start, signals, and how it ended
//   - deployment.go: the Deployment that says what the program is given
//   - pod.go: the Pod and the ServiceAccount in the API server
//   - environment.go: the environment variables
//   - exec.go: the same for a program that is started again and again, in one process: its own
//   - network.go: the network that such a program has for itself
//   - sweep.go: the process that ends what such programs have started and left behind
//   - mounts.go: directories that only the program and this process see
//   - token.go: the files of the service account, renewed in time
//   - webhooks.go: webhooks reach the program instead of a Service
//   - clientconfig.go: where an object says how its webhooks are reached
package incluster
