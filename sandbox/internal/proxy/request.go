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

// largestBody is the maximum number of bytes of a request body that the proxy reads before it
// forwards the request. API servers accept at most 3 MiB.
const largestBody = 8 << 20

// describe returns the properties of a request that rules can match, and a write's body. It reads
// the body first, so that no fault is injected while the body is still arriving. It makes the body
// readable again.
func describe(r *http.Request) (fault.Request, []byte, error) {
	described := fault.Request{Verb: strings.ToLower(r.Method), Path: r.URL.Path, UserAgent: r.UserAgent()}
	// Ignore the error: after an error, info does not describe a resource request.
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
		// The object's name is only in the body of a create request.
		described.Name = metadata(body).Name
	}
	return described, body, nil
}

// readBody reads a request's body and makes it readable again. The HTTP server detects that a
// client has disconnected only once the body has been read.
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

// resource formats a request's resource for the log, like deployments.apps/status.
func resource(r fault.Request) string {
	if r.Subresource != "" {
		return r.String() + "/" + r.Subresource
	}
	return r.String()
}

// errAborted is the error with which a rule or the control API aborts a watch's stream.
var errAborted = errors.New("broken off by a rule")
