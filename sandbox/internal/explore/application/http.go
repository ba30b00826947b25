// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package application

import (
	"io"
	"net/http"

	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/workload"
)

// table answers HTTP requests by the first answer that matches.
type table []workload.Answer

func (t table) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	for _, a := range t {
		if a.Path == r.URL.Path && (a.Method == "" || a.Method == r.Method) {
			w.WriteHeader(a.Status)
			_, _ = io.WriteString(w, a.Body)
			return
		}
	}
	http.NotFound(w, r)
}
