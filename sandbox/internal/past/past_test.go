// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package past

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"k8s.io/client-go/rest"
)

// TestHandler checks that each read is sent to the API server as a list request at the revision,
// and that the response has the form that the original request expects.
func TestHandler(t *testing.T) {
	const pods = `{"kind":"PodList","apiVersion":"v1","items":[{"metadata":{"name":"a","generation":12345678901234567890}}]}`
	for _, tc := range []struct {
		name, method, path string
		header             string
		// asked is the URI that the API server must receive; code and answer are the status code
		// and the body of its response.
		asked  string
		code   int
		answer string
		// wantCode is the expected status code; want must be part of the response to the client.
		wantCode int
		want     string
	}{
		{
			name: "a list", path: "/api/v1/namespaces/default/pods?limit=500",
			asked: "/api/v1/namespaces/default/pods?limit=500&resourceVersion=42&resourceVersionMatch=Exact", answer: pods,
			want: `"kind":"PodList"`,
		},
		{
			name: "the next page", path: "/api/v1/pods?continue=abc&limit=500",
			asked: "/api/v1/pods?continue=abc&limit=500", answer: pods,
			want: `"kind":"PodList"`,
		},
		{
			name: "an object", path: "/api/v1/namespaces/default/pods/a",
			asked: "/api/v1/namespaces/default/pods?fieldSelector=metadata.name%3Da&resourceVersion=42&resourceVersionMatch=Exact", answer: pods,
			want: `{"apiVersion":"v1","kind":"Pod","metadata":{"generation":12345678901234567890,"name":"a"}}`,
		},
		{
			name: "a cluster-scoped object of a custom kind", path: "/apis/example.com/v1/boats/ark",
			asked:  "/apis/example.com/v1/boats?fieldSelector=metadata.name%3Dark&resourceVersion=42&resourceVersionMatch=Exact",
			answer: `{"kind":"BoatList","apiVersion":"example.com/v1","items":[{"apiVersion":"example.com/v1","kind":"Boat","metadata":{"name":"ark"}}]}`,
			want:   `"kind":"Boat"`,
		},
		{
			name: "a table of one object", path: "/api/v1/namespaces/default/pods/a", header: "application/json;as=Table;v=v1;g=meta.k8s.io,application/json",
			asked:  "/api/v1/namespaces/default/pods?fieldSelector=metadata.name%3Da&resourceVersion=42&resourceVersionMatch=Exact",
			answer: `{"kind":"Table","rows":[{}]}`,
			want:   `"kind":"Table"`,
		},
		{
			name: "a namespace", path: "/api/v1/namespaces/shop",
			asked:  "/api/v1/namespaces?fieldSelector=metadata.name%3Dshop&resourceVersion=42&resourceVersionMatch=Exact",
			answer: `{"kind":"NamespaceList","apiVersion":"v1","items":[{"metadata":{"name":"shop"}}]}`,
			want:   `"kind":"Namespace"`,
		},
		{
			name: "what was not there", path: "/api/v1/namespaces/default/pods/a",
			asked: "/api/v1/namespaces/default/pods?fieldSelector=metadata.name%3Da&resourceVersion=42&resourceVersionMatch=Exact", answer: `{"kind":"PodList","items":[]}`,
			wantCode: http.StatusNotFound, want: `pods \"a\" not found in revision 42`,
		},
		{
			name: "a revision that is not kept", path: "/api/v1/pods", code: http.StatusGone,
			asked: "/api/v1/pods?resourceVersion=42&resourceVersionMatch=Exact", answer: `{}`,
			wantCode: http.StatusGone, want: "revision 42 is not kept any more",
		},
		{name: "discovery", path: "/apis", asked: "/apis", answer: `{"kind":"APIGroupDiscoveryList"}`, want: "APIGroupDiscoveryList"},
		{name: "a write", method: http.MethodDelete, path: "/api/v1/namespaces/default/pods/a", wantCode: http.StatusMethodNotAllowed, want: "revision 42 is past: it can only be read"},
		{name: "a watch", path: "/api/v1/pods?watch=true", wantCode: http.StatusMethodNotAllowed, want: "cannot be watched"},
		{name: "a log", path: "/api/v1/namespaces/default/pods/a/log", wantCode: http.StatusNotFound, want: "only objects are kept, not their log"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			asked := ""
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				asked = r.RequestURI
				if r.Header.Get("Authorization") != "" {
					t.Error("the client's credentials were passed on")
				}
				if tc.code != 0 {
					w.WriteHeader(tc.code)
				}
				_, _ = io.WriteString(w, tc.answer)
			}))
			defer server.Close()
			handler, err := Handler(&rest.Config{Host: server.URL}, 42)
			if err != nil {
				t.Fatal(err)
			}
			method := tc.method
			if method == "" {
				method = http.MethodGet
			}
			request := httptest.NewRequest(method, tc.path, nil)
			request.Header.Set("Authorization", "Bearer secret")
			request.Header.Set("Accept", tc.header)
			answer := httptest.NewRecorder()
			handler.ServeHTTP(answer, request)
			if asked != tc.asked {
				t.Errorf("the API server was asked\n%q, want\n%q", asked, tc.asked)
			}
			wantCode := tc.wantCode
			if wantCode == 0 {
				wantCode = http.StatusOK
			}
			if answer.Code != wantCode || !strings.Contains(answer.Body.String(), tc.want) {
				t.Errorf("%d %s\nwant %d with %s", answer.Code, answer.Body, wantCode, tc.want)
			}
		})
	}
}
