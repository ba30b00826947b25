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

// resolver understands requests as the API server does.
var resolver = &request.RequestInfoFactory{
	APIPrefixes:          sets.NewString("api", "apis"),
	GrouplessAPIPrefixes: sets.NewString("api"),
}

// largestBody is more than an API server takes, which is 3 MiB.
const largestBody = 8 << 20

// describe returns the parts of a request that rules and log use, and the body of a write, which
// can be read again: a fault is injected into a complete write, and not while its body is on its
// way.
func describe(r *http.Request) (fault.Request, []byte, error) {
	described := fault.Request{Verb: strings.ToLower(r.Method), Path: r.URL.Path, UserAgent: r.UserAgent()}
	// A request that cannot be resolved is forwarded like any other path.
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
		// Only the body has the name of the new object.
		described.Name = metadata(body).Name
	}
	return described, body, nil
}

// readBody reads the body, and makes it readable again, so that a later fault does not wait for the
// client. The server notices that a client has gone only after it has read the whole body.
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

// resource is how the log writes which resource a request is for.
func resource(r fault.Request) string {
	if r.Subresource != "" {
		return r.String() + "/" + r.Subresource
	}
	return r.String()
}

// errAborted is why a connection was closed without an answer.
var errAborted = errors.New("broken off by a rule")
