// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"tidekeeper.dev/tidekeeper/sandbox/internal/fault"
)

// TestReaderChange checks that a write's change consists of the object in the write's body and, if
// a rule needs it, the previous object. A handler replaces the API server.
func TestReaderChange(t *testing.T) {
	var asked []string
	a := reader{api: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.Method+" "+r.URL.String())
		if r.Header.Get("Accept-Encoding") != "" {
			t.Error("the answer may be compressed")
		}
		if strings.HasSuffix(r.URL.Path, "/absent") {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		w.WriteHeader(http.StatusOK)
		fmt.Fprint(w, `{"data":{"a":"old"}}`)
	})}
	for _, tc := range []struct {
		verb, path, body  string
		needsOld          bool
		object, old, asks string
		none              bool
	}{
		{verb: "update", path: "/a", body: `{"data":{"a":"new"}}`, needsOld: true, object: "new", old: "old", asks: "GET /a"},
		{verb: "update", path: "/a", body: `{"data":{"a":"new"}}`, object: "new"},
		{verb: "patch", path: "/absent", body: `{"data":{"a":"new"}}`, needsOld: true, object: "new", asks: "GET /absent"},
		{verb: "create", path: "/a", body: `{"data":{"a":"new"}}`, needsOld: true, object: "new"},
		{verb: "delete", path: "/a", needsOld: true, old: "old", asks: "GET /a"},
		{verb: "update", path: "/a", body: "[]", needsOld: true, none: true},
		{verb: "get", path: "/a", needsOld: true, none: true},
	} {
		asked = nil
		x := &exchange{request: fault.Request{Verb: tc.verb}}
		r := httptest.NewRequest(http.MethodPut, tc.path+"?fieldManager=x", strings.NewReader(tc.body))
		r.Header.Set("Accept-Encoding", "gzip")
		got := a.change(r, x, []byte(tc.body), func(fault.Request) bool { return tc.needsOld })
		if (got == nil) != tc.none {
			t.Errorf("%+v: change %+v", tc, got)
			continue
		}
		value := func(object map[string]any) string {
			data, _ := object["data"].(map[string]any)
			text, _ := data["a"].(string)
			return text
		}
		if got != nil && (value(got.Object) != tc.object || value(got.Old) != tc.old) || strings.Join(asked, ",") != tc.asks {
			t.Errorf("%+v: change %+v, asked %q", tc, got, asked)
		}
	}
}

// TestCrashIsPossible checks that a rule with the Crash fault is accepted only by a proxy that can
// restart its client.
func TestCrashIsPossible(t *testing.T) {
	for _, tc := range []struct {
		kind    fault.Kind
		crashes bool
		refuse  bool
	}{{fault.Crash, false, true}, {fault.Crash, true, false}, {fault.Delay, false, false}} {
		err := possible([]fault.Rule{{Name: "mine", Fault: fault.Fault{Kind: tc.kind}}}, tc.crashes)
		if (err != nil) != tc.refuse || tc.refuse && !strings.Contains(err.Error(), `rule "mine": Crash needs a program`) {
			t.Errorf("%+v: %v", tc, err)
		}
	}
}
