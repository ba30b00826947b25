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

// describe returns what rules and log look at in a request. It may read the
// body, and puts it back.
func describe(r *http.Request) (fault.Request, error) {
	described := fault.Request{Verb: strings.ToLower(r.Method), Path: r.URL.Path, UserAgent: r.UserAgent()}
	// What is not understood is passed on like any other path.
	info, _ := resolver.NewRequestInfo(r)
	if info == nil || !info.IsResourceRequest {
		return described, nil
	}
	described.Verb = info.Verb
	described.GroupResource = schema.GroupResource{Group: info.APIGroup, Resource: info.Resource}
	described.Subresource, described.Namespace, described.Name = info.Subresource, info.Namespace, info.Name
	if info.Verb == "watch" && r.URL.Query().Get("sendInitialEvents") == "true" {
		described.Verb = fault.VerbWatchList
	}
	if info.Verb == "create" && info.Name == "" {
		name, err := nameInBody(r)
		if err != nil {
			return described, fmt.Errorf("read the body: %w", err)
		}
		described.Name = name
	}
	return described, nil
}

// nameInBody returns the name of the object that is to be created, which only
// the body knows.
func nameInBody(r *http.Request) (string, error) {
	body, err := io.ReadAll(io.LimitReader(r.Body, largestBody))
	if err != nil {
		return "", err
	}
	r.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(body), r.Body), r.Body}
	return metadata(body).Name, nil
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
