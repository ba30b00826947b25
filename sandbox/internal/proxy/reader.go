// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"bytes"
	"encoding/json"
	"maps"
	"net/http"
	"net/url"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"tidekeeper.dev/tidekeeper/sandbox/internal/fault"
)

// reader reads objects that the proxy itself needs, using the credentials of the client whose
// request the proxy handles.
type reader struct {
	// api forwards a request to the API server.
	api http.Handler
}

// record sends a request and returns the complete, uncompressed response.
func (a reader) record(r *http.Request) *recording {
	r = r.Clone(r.Context())
	r.Header.Del("Accept-Encoding")
	answer := &recording{header: http.Header{}}
	a.api.ServeHTTP(answer, r)
	return answer
}

// change returns the change made by a write. Object is the object in the write's body (only the
// patched fields for a patch, nil for a deletion). Old is the API server's current object, if a
// rule needs it. For other requests, and if the object cannot be decoded, change returns nil.
func (a reader) change(r *http.Request, x *exchange, body []byte, needsOld func(fault.Request) bool) *fault.Change {
	change := &fault.Change{}
	switch x.request.Verb {
	case "create", "update", "patch":
		if change.Object = written(r.Header.Get("Content-Type"), body); change.Object == nil {
			return nil
		}
	case "delete":
	default:
		return nil
	}
	if x.request.Verb != "create" && needsOld(x.request) {
		change.Old = a.current(r, x)
	}
	return change
}

// current returns the current version of the object named in a request. It returns nil if the
// object does not exist, or if the client may not read it.
func (a reader) current(r *http.Request, x *exchange) map[string]any {
	asked := r.Clone(r.Context())
	asked.Method, asked.Body, asked.ContentLength, asked.URL.RawQuery = http.MethodGet, http.NoBody, 0, ""
	asked.Header.Del("Content-Type")
	asked.Header.Del("Content-Length")
	asked.Header.Set("Accept", runtime.ContentTypeJSON)
	answer := a.record(asked)
	// The log entry must contain the status of the client's request, not of this read.
	x.change(func(e *Entry) { e.Upstream = 0 })
	if answer.status != http.StatusOK {
		return nil
	}
	return decoded(answer.body.Bytes())
}

// olderThanNow reports whether a list as of the given resourceVersion differs from the current list
// in the names or versions of its objects.
func (a reader) olderThanNow(r *http.Request, version string) bool {
	query := r.URL.Query()
	for _, parameter := range []string{"limit", "resourceVersion", "resourceVersionMatch"} {
		query.Del(parameter)
	}
	current := r.Clone(r.Context())
	current.URL.RawQuery = query.Encode()
	now, is := a.listed(current)
	then, was := a.listed(asOf(r, r.URL.Path, query, version))
	return is && was && !maps.Equal(then, now)
}

// listed sends a list request and returns the resourceVersion of each returned object, keyed by the
// object's namespace, name and UID. It returns false if the request fails.
func (a reader) listed(r *http.Request) (map[string]string, bool) {
	r = r.Clone(r.Context())
	r.Header.Set("Accept", "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1")
	answer := a.record(r)
	var list metav1.PartialObjectMetadataList
	if answer.status != http.StatusOK || json.Unmarshal(answer.body.Bytes(), &list) != nil {
		return nil, false
	}
	versions := map[string]string{}
	for i := range list.Items {
		o := &list.Items[i]
		versions[o.Namespace+"/"+o.Name+" "+string(o.UID)] = o.ResourceVersion
	}
	return versions, true
}

// asOf turns a read into a list request for a path at exactly the given resourceVersion.
func asOf(r *http.Request, path string, query url.Values, version string) *http.Request {
	query.Set("resourceVersion", version)
	query.Set("resourceVersionMatch", string(metav1.ResourceVersionMatchExact))
	r = r.Clone(r.Context())
	r.URL.Path, r.URL.RawPath, r.URL.RawQuery = path, "", query.Encode()
	return r
}

// recording is a complete response held in memory.
type recording struct {
	header http.Header
	status int
	body   bytes.Buffer
}

// replay sends the recorded response to a client, but with the given body.
func (a *recording) replay(w http.ResponseWriter, body []byte) {
	for name, values := range a.header {
		if name != "Content-Length" {
			w.Header()[name] = values
		}
	}
	w.WriteHeader(a.status)
	_, _ = w.Write(body)
}

// Header implements http.ResponseWriter.
func (a *recording) Header() http.Header { return a.header }

// WriteHeader implements http.ResponseWriter.
func (a *recording) WriteHeader(status int) { a.status = status }

// Write implements http.ResponseWriter.
func (a *recording) Write(b []byte) (int, error) { return a.body.Write(b) }
