// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/endpoints/request"

	"tidekeeper.dev/tidekeeper/sandbox/internal/fault"
)

// resolver parses requests in the same way as the API server.
var resolver = &request.RequestInfoFactory{
	APIPrefixes:          sets.NewString("api", "apis"),
	GrouplessAPIPrefixes: sets.NewString("api"),
}

// largestBody is the maximum size of a body in bytes. An API server accepts only 3 MiB.
const largestBody = 8 << 20

// describe returns the parts of a request for rules and the log, and the body of a write. The body is read
// completely, so that no fault is injected while it is on its way, and can be read again.
func describe(r *http.Request) (fault.Request, []byte, error) {
	described := fault.Request{Verb: strings.ToLower(r.Method), Path: r.URL.Path, UserAgent: r.UserAgent()}
	// A request that cannot be resolved is forwarded like one for any other path.
	info, _ := resolver.NewRequestInfo(r)
	if info == nil || !info.IsResourceRequest {
		return described, nil, nil
	}
	described.Verb = info.Verb
	described.GroupResource = schema.GroupResource{Group: info.APIGroup, Resource: info.Resource}
	described.Subresource, described.Namespace, described.Name = info.Subresource, info.Namespace, info.Name
	if info.Verb == "watch" && r.URL.Query().Get("sendInitialEvents") == "true" {
		described.Verb = fault.VerbWatchList
	}
	if info.Verb == "list" || info.Verb == "watch" {
		described.ResourceVersion = r.URL.Query().Get("resourceVersion")
	}
	query := r.URL.Query()
	described.Cached = info.Verb == "list" && described.ResourceVersion != "" && !query.Has("continue") &&
		query.Get("resourceVersionMatch") != string(metav1.ResourceVersionMatchExact)
	if r.Method == http.MethodGet || r.Header.Get("Upgrade") != "" {
		return described, nil, nil
	}
	body, err := readBody(r)
	if err != nil {
		return described, nil, err
	}
	if info.Verb == "create" && info.Name == "" {
		// The name of a new object is in the body only.
		described.Name = metadata(body).Name
	}
	return described, body, nil
}

// readBody reads the body, and makes it readable again, so that faults do not wait for the client. The HTTP
// server notices a closed connection only after the body has been read.
func readBody(r *http.Request) ([]byte, error) {
	body, err := io.ReadAll(io.LimitReader(r.Body, largestBody))
	if err != nil {
		return nil, fmt.Errorf("read the body: %w", err)
	}
	r.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(body), r.Body), r.Body}
	return body, nil
}

// resource returns the resource of a request in the form of the log.
func resource(r fault.Request) string {
	if r.Subresource != "" {
		return r.String() + "/" + r.Subresource
	}
	return r.String()
}

// errAborted is the reason for closing a connection without a response.
var errAborted = errors.New("broken off by a rule")
