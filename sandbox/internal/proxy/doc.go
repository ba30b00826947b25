// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package proxy stands between clients and an API server, passes everything on
// as it is, and does to it what the rules of package fault say.
//
//	proxy.go    a request, from its arrival to its line in the log
//	upstream.go how the API server is reached, and as whom
//	serve.go    listeners, certificates and the kubeconfig for the clients
//	request.go  what rules and log look at in a request
//	answer.go   errors in the API server's stead
//	stale.go    reads answered from an older world
//	watch.go    the streams of watches, event by event
//	frame.go    where an event begins and ends, in JSON and in protobuf
//	object.go   the name and the resourceVersion of an object, in either
//	control.go  the proxy's own HTTP API
//	log.go      a line of JSON for each request and each fault of an event
package proxy
