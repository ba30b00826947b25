// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
)

// TestGaps checks that the versions after which a watch failed are marked: from those that may have
// been under way at that time up to the list that follows.
func TestGaps(t *testing.T) {
	now := time.Now()
	r := &Recorder{}
	for revision, ago := range map[int64]time.Duration{10: time.Minute, 20: 2 * inFlight, 30: inFlight / 2, 40: 0, 50: 0, 60: 0} {
		r.Versions = append(r.Versions, Version{Revision: revision, Time: now.Add(-ago)})
	}
	r.gaps.add(revisionBefore(r.Versions, now.Add(-inFlight)), "50")
	versions, err := r.All()
	if err != nil {
		t.Fatal(err)
	}
	var marked []int64
	for _, v := range versions {
		if v.InGap {
			marked = append(marked, v.Revision)
		}
	}
	if want := []int64{30, 40, 50}; !slices.Equal(marked, want) {
		t.Errorf("revisions %d are in the gap, want %d", marked, want)
	}
}

// TestFollow checks whether a watch counts as open: a watch that the API server refuses, also with its
// first event, was not, so that versions may be missing since the end of the watch before.
func TestFollow(t *testing.T) {
	const (
		event   = `{"type":"MODIFIED","object":{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a","uid":"a","resourceVersion":"7"}}}`
		tooOld  = `{"type":"ERROR","object":{"apiVersion":"v1","kind":"Status","code":410,"reason":"Expired"}}`
		refused = ""
	)
	for _, tc := range []struct {
		name       string
		events     []string
		open, fail bool
		next       string
	}{
		{"it ends", []string{event}, true, false, "7"},
		{"it ends without an event", []string{}, true, false, "5"},
		{"it breaks later", []string{event, tooOld}, true, true, "7"},
		{"its resourceVersion is too old", []string{tooOld}, false, true, "5"},
		{"it is refused", []string{refused}, false, true, "5"},
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			for _, e := range tc.events {
				if e == refused {
					w.WriteHeader(http.StatusForbidden)
				}
				fmt.Fprintln(w, e)
			}
		}))
		r, err := recorderOf(server.URL)
		if err != nil {
			t.Fatal(err)
		}
		next, open, err := r.follow(t.Context(), "pods", schema.GroupVersionResource{Version: "v1", Resource: "pods"}, "5")
		if open != tc.open || (err != nil) != tc.fail || next != tc.next {
			t.Errorf("%s: next %s, open %t, error %v", tc.name, next, open, err)
		}
		server.Close()
	}
}

// recorderOf returns a recorder of the API server at a URL that watches nothing yet.
func recorderOf(url string) (*Recorder, error) {
	client, err := dynamic.NewForConfig(&rest.Config{Host: url})
	return &Recorder{Client: client, Current: map[types.UID]*Version{}, changed: make(chan struct{})}, err
}
