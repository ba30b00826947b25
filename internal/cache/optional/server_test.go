// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package optional

import (
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"time"
)

// server is an API server that serves the optional kind Gadget while the field served is true.
type server struct {
	mu     sync.Mutex
	served bool
	names  []string
	// gone is closed when the kind is removed, which ends the kind's watches.
	gone chan struct{}
	// broken makes discovery requests fail. unlistable makes list requests for the kind fail.
	broken, unlistable bool
	// late is the delay from the creation of the CRD until discovery responses contain the kind.
	late time.Duration
	// since is the time at which the kind was last installed.
	since time.Time
	// forbid makes the server reject watches of the CRD. refused counts the rejected requests.
	forbid  bool
	refused int
	// crdChanged is closed when the CRD is created or deleted.
	crdChanged chan struct{}
}

func (s *server) set(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	was := s.served
	change()
	if was != s.served && s.crdChanged != nil {
		close(s.crdChanged)
		s.crdChanged = nil
	}
	switch {
	case s.served && !was:
		s.gone, s.since = make(chan struct{}), time.Now()
	case was && !s.served:
		close(s.gone)
	}
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	served, broken, names, gone, unlistable := s.served, s.broken, s.names, s.gone, s.unlistable
	known := served && time.Since(s.since) >= s.late
	s.mu.Unlock()
	answer := func(value any) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(value)
	}
	switch {
	case r.URL.Path == "/apis/apiextensions.k8s.io/v1/customresourcedefinitions":
		s.serveCRD(w, r)
	case broken:
		http.Error(w, "broken", http.StatusInternalServerError)
	case !known:
		http.NotFound(w, r)
	case r.URL.Path == "/apis/example.com/v1":
		answer(map[string]any{"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": "example.com/v1", "resources": []any{
			map[string]any{"name": "gadgets", "kind": "Gadget", "namespaced": true, "verbs": []string{"list", "watch"}},
		}})
	case unlistable:
		http.Error(w, "the conversion webhook does not answer", http.StatusInternalServerError)
	case r.URL.Query().Get("sendInitialEvents") != "":
		// The server does not support streaming lists.
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusUnprocessableEntity)
		_ = json.NewEncoder(w).Encode(map[string]any{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Invalid", "code": 422})
	case r.URL.Query().Get("watch") != "":
		w.Header().Set("Content-Type", "application/json")
		w.(http.Flusher).Flush()
		select {
		case <-gone:
		case <-r.Context().Done():
		}
	default:
		items := []any{}
		for i, name := range names {
			items = append(items, map[string]any{"apiVersion": "example.com/v1", "kind": "Gadget",
				"metadata": map[string]any{"namespace": "shop", "name": name, "uid": name, "resourceVersion": fmt.Sprint(i + 1)}})
		}
		answer(map[string]any{"kind": "GadgetList", "apiVersion": "example.com/v1", "metadata": map[string]any{"resourceVersion": "10"}, "items": items})
	}
}

// serveCRD responds to list and watch requests for the kind's CRD.
func (s *server) serveCRD(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	if s.forbid {
		s.refused++
	}
	forbid, served := s.forbid, s.served
	s.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	status := func(code int, reason string) {
		w.WriteHeader(code)
		_ = json.NewEncoder(w).Encode(map[string]any{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": reason, "code": code})
	}
	// The resourceVersion encodes whether the CRD exists. The server can therefore tell from a
	// watch request which state the client has seen.
	versions := map[bool]string{false: "10", true: "11"}
	crd := func(served bool) map[string]any {
		return map[string]any{"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata", "metadata": map[string]any{
			"name": "gadgets.example.com", "uid": "crd", "resourceVersion": versions[served],
		}}
	}
	switch {
	case forbid:
		status(http.StatusForbidden, "Forbidden")
	case r.URL.Query().Get("sendInitialEvents") != "":
		status(http.StatusUnprocessableEntity, "Invalid")
	case r.URL.Query().Get("fieldSelector") != "metadata.name=gadgets.example.com":
		status(http.StatusBadRequest, "BadRequest")
	case r.URL.Query().Get("watch") == "":
		items := []any{}
		if served {
			items = append(items, crd(true))
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1", "metadata": map[string]any{"resourceVersion": versions[served]}, "items": items})
	default:
		w.(http.Flusher).Flush()
		for before := r.URL.Query().Get("resourceVersion") == versions[true]; ; {
			s.mu.Lock()
			if s.crdChanged == nil {
				s.crdChanged = make(chan struct{})
			}
			now, changed := s.served, s.crdChanged
			s.mu.Unlock()
			if now != before {
				before = now
				_ = json.NewEncoder(w).Encode(map[string]any{"type": map[bool]string{true: "ADDED", false: "DELETED"}[now], "object": crd(now)})
				w.(http.Flusher).Flush()
				continue
			}
			select {
			case <-changed:
			case <-r.Context().Done():
				return
			}
		}
	}
}
