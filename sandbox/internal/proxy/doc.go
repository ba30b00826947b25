// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package proxy passes requests of clients on to an API server, and injects the
// faults of the rules of package fault.
//
//	proxy.go    a request, from its arrival to its line in the log
//	upstream.go connections to the API server, and their users
//	serve.go    listeners, certificates and the kubeconfig for the clients
//	request.go  the parts of a request that rules and log use
//	answer.go   errors as the API server writes them
//	reader.go   reads of the proxy itself, for rules about changes and for stale reads
//	stale.go    reads answered as of an older resourceVersion
//	watch.go    the streams of watches, event by event
//	frame.go    the beginning and end of an event, in JSON and in protobuf
//	history.go  the former versions of objects in a watch
//	object.go   the metadata of an object, in JSON and in protobuf
//	resources.go the resources of the API server
//	control.go  the proxy's own HTTP API
//	log.go      a line of JSON for each request and each fault of an event
package proxy
