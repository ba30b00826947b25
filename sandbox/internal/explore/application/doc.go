// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package application answers the operator's connections to pods and Services, whose containers do
// not run on simulated nodes. The operator's network has the addresses and names of the cluster, and
// all connections in it arrive in this process.
//
//	application.go the applications of a run, and the connections to them
//	exchange.go    requests and answers on a connection
//	disturb.go     faults of requests to applications
//	fallback.go    pods that are not ready for a moment
//	cluster.go     what a name and an address of the cluster stand for
//	http.go        answers to HTTP requests
package application
