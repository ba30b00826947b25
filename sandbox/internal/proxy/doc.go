// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package proxy forwards clients' requests to an API server, and injects faults according to the
// rules of package fault.
//
//	proxy.go    handles a request, from its arrival to its log entry
//	upstream.go connections to the API server, and their credentials
//	serve.go    listeners, certificates and the kubeconfig for the clients
//	request.go  the properties of a request for rules and log entries
//	answer.go   error responses in the API server's format
//	reader.go   the proxy's own reads, for rules with conditions and for stale reads
//	stale.go    reads answered as of an older resourceVersion
//	watch.go    watch streams, event by event
//	frame.go    the encoding of watch events, in JSON and in protobuf
//	history.go  the previous versions of objects in a watch
//	object.go   object metadata, in JSON and in protobuf
//	resources.go the resources served by the API server
//	control.go  the proxy's own HTTP API
//	log.go      writes a line of JSON for each request and each fault of an event
package proxy
