// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	"tidekeeper.dev/tidekeeper/sandbox/internal/fault"
)

// TestStaleFromTheCache checks that a Stale rule with Cached only answers lists that a lagging
// watch cache may answer, but no list at the current or at an exact resourceVersion. The log must
// report whether the response differed from the current list.
func TestStaleFromTheCache(t *testing.T) {
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		version := "9"
		if query := r.URL.Query(); query.Get("resourceVersionMatch") == "Exact" {
			version = query.Get("resourceVersion")
		}
		changed := version
		if strings.HasSuffix(r.URL.Path, "/secrets") {
			changed = "1" // The only Secret has never changed.
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(w, `{"metadata":{"resourceVersion":%q},"items":[{"metadata":{"name":"a","resourceVersion":%q}}]}`, version, changed)
	}))
	defer upstream.Close()
	rule := fault.Rule{Name: "old", Match: fault.Match{Verbs: []string{"list"}}, Fault: fault.Fault{Kind: fault.Stale, ResourceVersion: "5", Cached: true}}
	s, config, log := serve(t, &rest.Config{Host: upstream.URL}, rule)
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name, list   string
		stale, older bool
	}{
		{name: "the present", list: "configmaps"},
		{name: "any version", list: "configmaps?resourceVersion=0", stale: true, older: true},
		{name: "any version, and not many at once", list: "configmaps?resourceVersion=0&limit=500", stale: true, older: true},
		{name: "at least an older one", list: "configmaps?resourceVersion=4&resourceVersionMatch=NotOlderThan", stale: true, older: true},
		{name: "at least a newer one", list: "configmaps?resourceVersion=6"},
		{name: "one moment", list: "configmaps?resourceVersion=4&resourceVersionMatch=Exact"},
		{name: "the rest of a list", list: "configmaps?resourceVersion=0&continue=a"},
		{name: "what has not changed since", list: "secrets?resourceVersion=0", stale: true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			before := log.String()
			fired := func() int {
				rules, _ := s.Rules().List()
				return rules[0].Fired
			}
			earlier := fired()
			response, err := client.Get(s.URL + "/api/v1/" + tc.list)
			if err != nil {
				t.Fatal(err)
			}
			defer response.Body.Close()
			text, err := io.ReadAll(response.Body)
			if err != nil || strings.HasPrefix(string(text), `{"metadata":{"resourceVersion":"5"}`) != tc.stale || (fired() > earlier) != tc.stale {
				t.Errorf("the rule fired %d times, and the answer is %s, %v", fired()-earlier, text, err)
			}
			var line string
			await(t, func() string {
				if line = strings.TrimPrefix(log.String(), before); line == "" {
					return "nothing is logged"
				}
				return ""
			})
			if strings.Contains(line, `"older":true`) != tc.older || strings.Contains(line, `"rule":"old"`) != tc.stale {
				t.Errorf("logged: %s", line)
			}
		})
	}
}
