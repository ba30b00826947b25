// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package query

import (
	"compress/gzip"
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func vector(results string) string {
	return `{"status":"success","data":{"resultType":"vector","result":[` + results + `]}}`
}

// serve starts a test server with the given handler, and returns a client for the server.
func serve(t *testing.T, answer http.HandlerFunc) *server {
	t.Helper()
	s := httptest.NewServer(answer)
	t.Cleanup(s.Close)
	c, err := newServer(Prometheus{URL: s.URL, TimeoutSeconds: maxTimeout})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestAnswers(t *testing.T) {
	says := func(code int, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(code)
			fmt.Fprint(w, body)
		}
	}
	const down, up = `{"metric":{"__name__":"ALERTS","alertname":"Down"},"value":[1,"1"]}`, `{"metric":{"__name__":"A"},"value":[1,"1"]}`
	endless := func(w io.Writer) {
		junk := []byte(strings.Repeat(" ", 1<<16))
		for {
			if _, err := w.Write(junk); err != nil {
				return
			}
		}
	}
	for name, tc := range map[string]struct {
		answer       http.HandlerFunc
		result, fail string
	}{
		"no result":                {says(200, vector("")), "", ""},
		"a result":                 {says(200, vector(down)), `ALERTS{alertname="Down"}`, ""},
		"the first of its results": {says(200, vector(down+","+up)), `A`, ""},
		"a result without labels":  {says(200, vector(`{"metric":{},"value":[1,"0"]}`)), `{}`, ""},
		"labels with line breaks":  {says(200, vector(`{"metric":{"a":"b\nc\u001b[31m"},"value":[1,"1"]}`)), `{a="b\nc\x1b[31m"}`, ""},
		"labels without an end":    {says(200, vector(`{"metric":{"a":"`+strings.Repeat("x", 5000)+`"},"value":[1,"1"]}`)), `{a="` + strings.Repeat("x", maxWords-7) + "…", ""},
		"warnings and no result":   {says(200, `{"status":"success","warnings":["a store is away"],"data":{"resultType":"vector","result":[]}}`), "", "warning: a store is away"},
		"warnings and a result":    {says(200, `{"status":"success","warnings":["x"],"data":{"resultType":"vector","result":[`+down+`]}}`), `ALERTS{alertname="Down"}`, ""},
		"a number":                 {says(200, `{"status":"success","data":{"resultType":"scalar","result":[1,"0"]}}`), "", "it returns a scalar, and must return an instant vector"},
		"a matrix":                 {says(200, `{"status":"success","data":{"resultType":"matrix","result":[]}}`), "", "it returns a matrix, and must return an instant vector"},
		"an error of the query":    {says(400, `{"status":"error","errorType":"bad_data","error":"parse error"}`), "", "bad_data: parse error"},
		"no right":                 {says(401, "who are you"), "", "client_error: client error: 401"},
		"not there":                {says(404, ""), "", "client_error: client error: 404"},
		"it is broken":             {says(500, "<html>"), "", "server_error: server error: 500"},
		"it is overloaded":         {says(503, `{"status":"error","errorType":"unavailable","error":"later"}`), "", "server_error: server error: 503"},
		"nothing":                  {says(200, ""), "", "bad_response: "},
		"no content":               {says(204, ""), "", "its answer is not that of a Prometheus, or ends too early"},
		"a page to log in":         {says(200, "<html>log in</html>"), "", "bad_response: "},
		"no data":                  {says(200, `{"status":"success"}`), "", "its answer is not that of a Prometheus, or ends too early"},
		"empty data":               {says(200, `{"status":"success","data":{}}`), "", "its answer is not that of a Prometheus, or ends too early"},
		"half an answer":           {says(200, vector("")[:60]), "", "bad_response: "},
		"to somewhere else": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://127.0.0.1:1/", http.StatusFound)
		}, "", "the server redirects to another address, which is not followed"},
		"a body without an end": {func(w http.ResponseWriter, _ *http.Request) { endless(w) }, "", "its answer has more than 1048576 bytes"},
		"a small body of zeros": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			z := gzip.NewWriter(w)
			endless(z)
		}, "", "its answer has more than 1048576 bytes"},
		"brackets without an end": {says(200, strings.Repeat("[", 1<<19)), "", "bad_response: "},
		"it hangs":                {func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, "", "no answer within 300ms"},
		"its body hangs": {func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprint(w, `{"status":`)
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		}, "", "no answer within 300ms"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			// The server detects that the client has closed the connection only after it has read
			// the body of the request.
			s := serve(t, func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				tc.answer(w, r)
			})
			if strings.HasPrefix(tc.fail, "no answer") {
				s.timeout = 300 * time.Millisecond
			}
			result, err := s.ask(t.Context(), "up")
			if tc.fail == "" && (err != nil || result != tc.result) {
				t.Errorf("%q, %v, want %q", result, err, tc.result)
			}
			if tc.fail != "" && (err == nil || !strings.Contains(err.Error(), tc.fail)) {
				t.Errorf("%q, %v, want %q", result, err, tc.fail)
			}
			if err != nil && (strings.ContainsAny(err.Error(), "\n\x1b") || len(err.Error()) > maxWords+20 || strings.Contains(err.Error(), "127.0.0.1")) {
				t.Errorf("its words are not for a status: %q", err)
			}
		})
	}
}

func TestNothingListens(t *testing.T) {
	s, err := newServer(Prometheus{URL: "http://127.0.0.1:1", TimeoutSeconds: maxTimeout})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.ask(t.Context(), "up"); err == nil || err.Error() != "dial: connect: connection refused" {
		t.Errorf("%v", err)
	}
}

// TestWords checks that the description of an error, which is written to a status, is the same each
// time the error occurs.
func TestWords(t *testing.T) {
	s := &server{timeout: 5 * time.Second}
	sent := func(err error) error {
		return &url.Error{Op: "Post", URL: "https://u:secret@p/api/v1/query", Err: err}
	}
	for want, err := range map[string]error{
		"no such host: p": sent(&net.OpError{Op: "dial", Err: &net.DNSError{Err: "no such host", Name: "p", Server: "10.0.0.10:53"}}),
		"read: connection reset by peer": sent(&net.OpError{
			Op: "read", Source: &net.TCPAddr{Port: 53412}, Addr: &net.TCPAddr{Port: 9090}, Err: errors.New("connection reset by peer"),
		}),
		"no answer within 5s": sent(context.DeadlineExceeded),
		"EOF":                 sent(io.EOF),
		"x509: not trusted":   sent(errors.New("x509: not\ntrusted")),
		errRedirected.Error(): sent(errRedirected),
		"its answer is not that of a Prometheus, or ends too early": io.ErrUnexpectedEOF,
	} {
		if got := s.words(err); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestTokenAndCertificates(t *testing.T) {
	var asked http.Header
	tls := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = r.Header.Clone()
		asked.Set("Query", r.FormValue("query"))
		fmt.Fprint(w, vector(""))
	}))
	defer tls.Close()
	dir := t.TempDir()
	write := func(name string, content []byte) string {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, content, 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	ca := write("ca.crt", pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: tls.Certificate().Raw}))
	token := write("token", []byte("secret\n"))
	s, err := newServer(Prometheus{URL: tls.URL, CAFile: ca, BearerTokenFile: token, TimeoutSeconds: maxTimeout})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.ask(t.Context(), "up == 0"); err != nil || asked.Get("Authorization") != "Bearer secret" || asked.Get("Query") != "up == 0" {
		t.Errorf("%v, asked with %v", err, asked)
	}
	unknown, err := newServer(Prometheus{URL: tls.URL, TimeoutSeconds: maxTimeout})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := unknown.ask(t.Context(), "up"); err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("a certificate of an unknown authority: %v", err)
	}
	for name, p := range map[string]Prometheus{
		"no token":           {URL: tls.URL, BearerTokenFile: filepath.Join(dir, "none"), TimeoutSeconds: maxTimeout},
		"no certificates":    {URL: tls.URL, CAFile: filepath.Join(dir, "none"), TimeoutSeconds: maxTimeout},
		"wrong certificates": {URL: tls.URL, CAFile: token, TimeoutSeconds: maxTimeout},
	} {
		if _, err := newServer(p); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
