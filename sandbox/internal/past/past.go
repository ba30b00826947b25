// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package past serves reads of the API server's objects, as of an earlier etcd revision, to
// unmodified clients such as kubectl.
package past

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httputil"
	"net/url"
	"path"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/client-go/rest"
)

// requests parses the path of an API request into its verb, resource, namespace and name.
var requests = request.RequestInfoFactory{APIPrefixes: sets.NewString("api", "apis"), GrouplessAPIPrefixes: sets.NewString("api")}

// Handler serves reads of objects as of an etcd revision, which can be the resourceVersion of an
// object or a list. It reads from the API server that config connects to. Discovery requests return
// the current state. All other requests, including watches and subresources, are rejected.
func Handler(config *rest.Config, revision int64) (http.Handler, error) {
	server, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, err
	}
	transport, err := rest.TransportFor(config)
	if err != nil {
		return nil, err
	}
	proxy := &httputil.ReverseProxy{
		Transport: transport,
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(&url.URL{Scheme: server.Scheme, Host: server.Host})
			// The client's credentials are only valid for this handler.
			r.Out.Header.Del("Authorization")
			// Request an uncompressed response, because it is decoded here.
			r.Out.Header.Del("Accept-Encoding")
		},
		ModifyResponse: func(r *http.Response) error { return modify(r, revision) },
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		info, err := requests.NewRequestInfo(r)
		switch {
		case err != nil:
			refuse(w, http.StatusBadRequest, err.Error())
		case r.Method != http.MethodGet:
			refuse(w, http.StatusMethodNotAllowed, fmt.Sprintf("revision %d is past: it can only be read", revision))
		case !info.IsResourceRequest:
			proxy.ServeHTTP(w, r)
		case info.Verb == "watch":
			refuse(w, http.StatusMethodNotAllowed, fmt.Sprintf("revision %d is past: nothing of it changes any more, so it cannot be watched", revision))
		case info.Subresource != "":
			refuse(w, http.StatusNotFound, fmt.Sprintf("of revision %d only objects are kept, not their %s", revision, info.Subresource))
		default:
			proxy.ServeHTTP(w, r.WithContext(request.WithRequestInfo(r.Context(), ask(r, info, revision))))
		}
	}), nil
}

// ask converts a request for an object or a list into a list request at the given revision, because
// the API server can return single objects only in their current version. It returns the
// information about the original request, whose name is empty if that request was for a list.
func ask(r *http.Request, info *request.RequestInfo, revision int64) *request.RequestInfo {
	query := r.URL.Query()
	if info.Name != "" && !strings.Contains(query.Get("fieldSelector"), "metadata.name=") {
		r.URL.Path, r.URL.RawPath = path.Dir(r.URL.Path), ""
		query.Set("fieldSelector", "metadata.name="+info.Name)
	} else {
		// If the request is already for a list, a field selector may restrict it to a single name.
		// Clear the name, so that the response is treated as a list.
		list := *info
		list.Name, info = "", &list
	}
	// The continue token already contains the revision of the first page.
	if query.Get("continue") == "" {
		query.Set("resourceVersion", strconv.FormatInt(revision, 10))
		query.Set("resourceVersionMatch", string(metav1.ResourceVersionMatchExact))
	}
	r.URL.RawQuery = query.Encode()
	// Request JSON, because this handler cannot decode any other encoding.
	accept := r.Header.Get("Accept")
	if strings.Contains(accept, "as=Table") {
		r.Header.Set("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io,application/json")
	} else {
		r.Header.Set("Accept", "application/json")
	}
	return info
}

// modify converts the API server's response to a list request into the response to the original
// request.
func modify(r *http.Response, revision int64) error {
	info, ok := request.RequestInfoFrom(r.Request.Context())
	if !ok {
		return nil
	}
	switch {
	case r.StatusCode == http.StatusGone:
		return replace(r, http.StatusGone, status(http.StatusGone, fmt.Sprintf("revision %d is not kept any more: a sandbox that was started with --keep-history keeps all", revision)))
	case r.StatusCode != http.StatusOK || info.Name == "":
		return nil
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return err
	}
	object, found, err := single(body)
	switch {
	case err != nil:
		return err
	case !found:
		message := fmt.Sprintf("%s %q not found in revision %d", info.Resource, info.Name, revision)
		return replace(r, http.StatusNotFound, status(http.StatusNotFound, message))
	default:
		return replace(r, http.StatusOK, object)
	}
}

// single returns the only item of a list, or a Table with a single row. It returns false if the
// number of items or rows is not one.
func single(body []byte) (object any, found bool, _ error) {
	var list struct {
		Kind       string           `json:"kind"`
		APIVersion string           `json:"apiVersion"`
		Items      []map[string]any `json:"items"`
		Rows       []any            `json:"rows"`
	}
	// Do not convert numbers to float64, which would change large integers.
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.UseNumber()
	if err := decoder.Decode(&list); err != nil {
		return nil, false, fmt.Errorf("the list that the API server answered: %w", err)
	}
	switch {
	case list.Kind == "Table":
		return json.RawMessage(body), len(list.Rows) == 1, nil
	case len(list.Items) != 1:
		return nil, false, nil
	}
	item := list.Items[0]
	// Lists of built-in kinds omit the kind of their items.
	if item["kind"] == nil {
		item["kind"], item["apiVersion"] = strings.TrimSuffix(list.Kind, "List"), list.APIVersion
	}
	return item, true, nil
}

func status(code int, message string) metav1.Status {
	s := metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure, Code: int32(code), Message: message}
	switch code {
	case http.StatusNotFound:
		s.Reason = metav1.StatusReasonNotFound
	case http.StatusGone:
		s.Reason = metav1.StatusReasonExpired
	case http.StatusMethodNotAllowed:
		s.Reason = metav1.StatusReasonMethodNotAllowed
	default:
		s.Reason = metav1.StatusReasonBadRequest
	}
	return s
}

func replace(r *http.Response, code int, object any) error {
	body, err := json.Marshal(object)
	if err != nil {
		return err
	}
	err = errors.Join(r.Body.Close())
	r.Body = io.NopCloser(bytes.NewReader(body))
	r.StatusCode, r.Status = code, http.StatusText(code)
	r.ContentLength = int64(len(body))
	r.Header.Set("Content-Length", strconv.Itoa(len(body)))
	r.Header.Set("Content-Type", "application/json")
	return err
}

func refuse(w http.ResponseWriter, code int, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(status(code, message))
}
