// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"bytes"
	"encoding/json"
	"mime"
	"net/http"
	"path"
	"regexp"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
	"k8s.io/apimachinery/pkg/runtime"

	"tidekeeper.dev/tidekeeper/sandbox/internal/fault"
)

// stale answers a read as of an older resourceVersion, which the API server can serve until it
// compacts its history after some minutes. A list is requested at that resourceVersion, and a get
// becomes a list of a single name. A streaming list is rejected, as by API servers without support
// for streaming lists, so that the client falls back to a list.
func (a reader) stale(w http.ResponseWriter, r *http.Request, x *exchange, action *fault.Action) {
	query := r.URL.Query()
	switch {
	case x.request.Verb == fault.VerbWatchList:
		answer(w, noStreamingLists(x.request))
	case x.request.Subresource != "" || query.Has("continue"):
		// Forward the read unchanged: a subresource cannot be listed, and later pages of a list
		// have the same resourceVersion as the first page.
		a.api.ServeHTTP(w, r)
	case action.SetResourceVersion != nil:
		a.learnVersion(w, r, x, action)
	case x.request.Verb == "list":
		if action.Fault.Cached {
			older := a.olderThanNow(r, action.Fault.ResourceVersion)
			x.change(func(e *Entry) { e.Older = older })
		}
		a.api.ServeHTTP(w, asOf(r, r.URL.Path, query, action.Fault.ResourceVersion))
	default:
		a.staleGet(w, r, x, action.Fault.ResourceVersion)
	}
}

// learnVersion forwards a read, and sets the resourceVersion of the Stale rule to the
// resourceVersion in the response.
func (a reader) learnVersion(w http.ResponseWriter, r *http.Request, x *exchange, action *fault.Action) {
	copied := a.record(r)
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

func (a reader) staleGet(w http.ResponseWriter, r *http.Request, x *exchange, version string) {
	query := r.URL.Query()
	query.Set("fieldSelector", "metadata.name="+x.request.Name)
	asked := asOf(r, path.Dir(r.URL.Path), query, version)
	// PartialObjectMetadata is the media type for a single object. Replace it with
	// PartialObjectMetadataList, the media type for a list.
	for i, accept := range asked.Header["Accept"] {
		asked.Header["Accept"][i] = metadataOnly.ReplaceAllString(accept, "${1}List$2")
	}
	list := a.record(asked)
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

// onlyItem returns the object in an encoded list with at most one object, or false if the list is
// empty. It returns a table with a single row unchanged, because a get returns the same table.
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
	// Items of a typed list lack their kind and apiVersion.
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

// itemsField is the protobuf field number of the items in a list of any kind.
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
