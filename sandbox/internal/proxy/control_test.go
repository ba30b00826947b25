// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"k8s.io/client-go/rest"
)

// post sends a body to the proxy's own API and decodes its answer.
func post(t *testing.T, url, body string, answer any) {
	t.Helper()
	response, err := http.Post(url, "", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, answer); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
}

// TestFrozenAtOnce: a watch is shown as frozen as soon as a rule will hold its next
// event, before there is one.
func TestFrozenAtOnce(t *testing.T) {
	s, config, _ := serve(t, watched(t, "application/json", nil))
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	response, err := client.Get(s.URL + "/api/v1/nodes?watch=true")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	await(t, func() string {
		if open := watches(t, s); len(open) != 1 || open[0].Frozen {
			return fmt.Sprintf("before: %+v", open)
		}
		return ""
	})
	post(t, s.Control+"/freeze", "match: {resources: [nodes]}", &struct{}{})
	if open := watches(t, s); len(open) != 1 || !open[0].Frozen || open[0].Waiting != 0 {
		t.Errorf("after freeze: %+v", open)
	}
	post(t, s.Control+"/thaw", "", &struct{}{})
	if open := watches(t, s); len(open) != 1 || open[0].Frozen {
		t.Errorf("after thaw: %+v", open)
	}
}

// TestUnknownResources: a rule for a resource that the API server does not have is
// added with a warning.
func TestUnknownResources(t *testing.T) {
	answers := map[string]string{
		"/api":           `{"kind":"APIVersions","versions":["v1"]}`,
		"/apis":          `{"kind":"APIGroupList","apiVersion":"v1","groups":[{"name":"apps","versions":[{"groupVersion":"apps/v1","version":"v1"}],"preferredVersion":{"groupVersion":"apps/v1","version":"v1"}}]}`,
		"/api/v1":        `{"kind":"APIResourceList","groupVersion":"v1","resources":[{"name":"pods","kind":"Pod"},{"name":"pods/status","kind":"Pod"}]}`,
		"/apis/apps/v1":  `{"kind":"APIResourceList","groupVersion":"apps/v1","resources":[{"name":"deployments","kind":"Deployment"},{"name":"deployments/scale","kind":"Scale"}]}`,
		"/apis/other/v1": `{}`,
	}
	var down atomic.Bool
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer, ok := answers[r.URL.Path]
		if !ok || down.Load() {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, answer)
	}))
	defer upstream.Close()
	s, _, _ := serve(t, &rest.Config{Host: upstream.URL})
	for i, tc := range []struct {
		resources string
		want      []string
	}{
		{"pods, pods/status, deployments.apps, '*/scale', '*', '!nothing'", nil},
		{"podz", []string{"podz"}},
		{"pods/log, deployments.extensions, deployments", []string{"pods/log", "deployments.extensions"}},
	} {
		var answer struct{ Warnings []string }
		post(t, s.Control+"/rules", fmt.Sprintf("rules: [{name: r%d, match: {resources: [%s]}, fault: {kind: Close}}]", i, tc.resources), &answer)
		var want []string
		for _, resource := range tc.want {
			want = append(want, fmt.Sprintf("rule \"r%d\": the API server has no resource %q", i, resource))
		}
		if !slices.Equal(answer.Warnings, want) {
			t.Errorf("%s: warnings %q, want %q", tc.resources, answer.Warnings, want)
		}
	}
	down.Store(true)
	var answer struct{ Warnings []string }
	post(t, s.Control+"/rules", "rules: [{name: gone, match: {resources: [podz]}, fault: {kind: Close}}]", &answer)
	if answer.Warnings != nil {
		t.Errorf("without an API server: warnings %q", answer.Warnings)
	}
}
