// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"bytes"
	"encoding/json"
	"maps"
	"mime"
	"net/http"
	"net/url"
	"path"
	"regexp"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"tidekeeper.dev/tidekeeper/sandbox/internal/fault"
)

// stale answers a read as of an older resourceVersion, which the API server
// still knows until it compacts its history, after some minutes. It can list
// as of one; a get becomes a list of one name, and a streaming list is refused,
// as by API servers without them, so that the client falls back to a list.
func (p *Proxy) stale(w http.ResponseWriter, r *http.Request, x *exchange, action *fault.Action) {
	query := r.URL.Query()
	switch {
	case x.request.Verb == fault.VerbWatchList:
		answer(w, noStreamingLists(x.request))
	case x.request.Subresource != "" || query.Has("continue"):
		// A subresource cannot be listed, and the rest of a list that was begun is
		// as old as its beginning.
		p.reverse.ServeHTTP(w, r)
	case action.SetResourceVersion != nil:
		p.learnVersion(w, r, x, action)
	case x.request.Verb == "list":
		if action.Fault.Cached {
			older := p.olderThanNow(r, action.Fault.ResourceVersion)
			x.change(func(e *entry) { e.Older = older })
		}
		p.reverse.ServeHTTP(w, asOf(r, r.URL.Path, query, action.Fault.ResourceVersion))
	default:
		p.staleGet(w, r, x, action.Fault.ResourceVersion)
	}
}

// learnVersion lets a read through and sets the rule's resourceVersion to that of the
// answer.
func (p *Proxy) learnVersion(w http.ResponseWriter, r *http.Request, x *exchange, action *fault.Action) {
	copied := p.record(r)
	if copied.status == http.StatusOK {
		version := listVersion(copied.body.Bytes())
		if x.request.Verb == "get" {
			version = metadata(copied.body.Bytes()).ResourceVersion
		}
		action.SetResourceVersion(version)
	}
	copied.replay(w, copied.body.Bytes())
}

var metadataOnly = regexp.MustCompile(`(;\s*as=PartialObjectMetadata)(\s|;|,|$)`)

func (p *Proxy) staleGet(w http.ResponseWriter, r *http.Request, x *exchange, version string) {
	query := r.URL.Query()
	query.Set("fieldSelector", "metadata.name="+x.request.Name)
	asked := asOf(r, path.Dir(r.URL.Path), query, version)
	// The metadata of a list has another media type than that of an object.
	for i, accept := range asked.Header["Accept"] {
		asked.Header["Accept"][i] = metadataOnly.ReplaceAllString(accept, "${1}List$2")
	}
	list := p.record(asked)
	if list.status != http.StatusOK {
		list.replay(w, list.body.Bytes())
		return
	}
	object, found := onlyItem(list.body.Bytes(), list.header.Get("Content-Type"))
	if !found {
		answer(w, notFound(x.request))
		return
	}
	list.replay(w, object)
}

// asOf makes a read one of the given resourceVersion.
func asOf(r *http.Request, path string, query url.Values, version string) *http.Request {
	query.Set("resourceVersion", version)
	query.Set("resourceVersionMatch", string(metav1.ResourceVersionMatchExact))
	r = r.Clone(r.Context())
	r.URL.Path, r.URL.RawPath, r.URL.RawQuery = path, "", query.Encode()
	return r
}

// olderThanNow reports whether a list as of a resourceVersion has other objects than one of now,
// or other versions of them.
func (p *Proxy) olderThanNow(r *http.Request, version string) bool {
	query := r.URL.Query()
	for _, parameter := range []string{"limit", "resourceVersion", "resourceVersionMatch"} {
		query.Del(parameter)
	}
	current := r.Clone(r.Context())
	current.URL.RawQuery = query.Encode()
	now, is := p.listed(current)
	then, was := p.listed(asOf(r, r.URL.Path, query, version))
	return is && was && !maps.Equal(then, now)
}

// listed returns the versions of the objects in the answer to a list.
func (p *Proxy) listed(r *http.Request) (map[string]string, bool) {
	r = r.Clone(r.Context())
	r.Header.Set("Accept", "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1")
	answer := p.record(r)
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

// recording is an answer kept whole.
type recording struct {
	header http.Header
	status int
	body   bytes.Buffer
}

// record asks the API server, for an answer that can be read.
func (p *Proxy) record(r *http.Request) *recording {
	r = r.Clone(r.Context())
	r.Header.Del("Accept-Encoding")
	answer := &recording{header: http.Header{}}
	p.reverse.ServeHTTP(answer, r)
	return answer
}

// replay answers a client with another body.
func (a *recording) replay(w http.ResponseWriter, body []byte) {
	for name, values := range a.header {
		if name != "Content-Length" {
			w.Header()[name] = values
		}
	}
	w.WriteHeader(a.status)
	_, _ = w.Write(body)
}

// Header returns the headers of the answer.
func (a *recording) Header() http.Header { return a.header }

// WriteHeader keeps the status.
func (a *recording) WriteHeader(status int) { a.status = status }

// Write keeps a part of the body.
func (a *recording) Write(b []byte) (int, error) { return a.body.Write(b) }

// onlyItem takes the object out of an encoded list that has at most one. A table
// of one row is what a get answers as well and stays as it is.
func onlyItem(list []byte, contentType string) ([]byte, bool) {
	_, parameters, err := mime.ParseMediaType(contentType)
	if err == nil && parameters["as"] == "Table" {
		return list, true
	}
	if envelope, is := fromEnvelope(list); is {
		return onlyProtobufItem(envelope)
	}
	return onlyJSONItem(list)
}

func onlyJSONItem(encoded []byte) ([]byte, bool) {
	var list struct {
		runtime.TypeMeta
		Items []map[string]json.RawMessage `json:"items"`
	}
	if err := json.Unmarshal(encoded, &list); err != nil || len(list.Items) == 0 {
		return nil, false
	}
	// A list has the kind of its items only once, in its own.
	object := list.Items[0]
	for field, value := range map[string]string{"apiVersion": list.APIVersion, "kind": strings.TrimSuffix(list.Kind, "List")} {
		if _, given := object[field]; given {
			continue
		}
		quoted, err := json.Marshal(value)
		if err != nil {
			return nil, false
		}
		object[field] = quoted
	}
	item, err := json.Marshal(object)
	return item, err == nil
}

// itemsField is the number of the field items in every list.
const itemsField = 2

func onlyProtobufItem(list runtime.Unknown) ([]byte, bool) {
	for rest := list.Raw; len(rest) > 0; {
		number, kind, tag := protowire.ConsumeTag(rest)
		if tag < 0 {
			return nil, false
		}
		value := protowire.ConsumeFieldValue(number, kind, rest[tag:])
		if value < 0 {
			return nil, false
		}
		if number == itemsField && kind == protowire.BytesType {
			item, _ := protowire.ConsumeBytes(rest[tag:])
			list.Raw = item
			list.Kind = strings.TrimSuffix(list.Kind, "List")
			encoded, err := list.Marshal()
			return append(bytes.Clone(protobufPrefix), encoded...), err == nil
		}
		rest = rest[tag+value:]
	}
	return nil, false
}
