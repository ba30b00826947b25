// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package application

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/workload"
)

func TestTable(t *testing.T) {
	answers := table([]workload.Answer{
		{Method: http.MethodPost, Path: "/members", Status: http.StatusServiceUnavailable},
		{Path: "/members", Status: http.StatusOK, Body: "3"},
	})
	for _, tc := range []struct{ method, path, want string }{
		{http.MethodGet, "/members?all=true", "200 3"},
		{http.MethodPost, "/members", "503 "},
		{http.MethodGet, "/members/1", "404 404 page not found\n"},
	} {
		w := httptest.NewRecorder()
		answers.ServeHTTP(w, httptest.NewRequest(tc.method, tc.path, nil))
		if got := fmt.Sprintf("%d %s", w.Code, w.Body); got != tc.want {
			t.Errorf("%s %s: %q, want %q", tc.method, tc.path, got, tc.want)
		}
	}
}
