// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/view"
)

const testToken = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFG"

// newTestSite returns a site of a cluster with the given kinds and actions. Without the kind
// NodeMaintenance, the cluster has no objects of it.
func newTestSite(t *testing.T, actions Actions, kinds ...Kind) *Site {
	t.Helper()
	if !slices.ContainsFunc(kinds, func(k Kind) bool { return k.Name == kindMaintenances }) {
		kinds = append(kinds, noMaintenances())
	}
	world := NewWorld(kinds, func() time.Time { return noon })
	t.Cleanup(world.stopAll)
	cluster := Cluster{
		Metrics: func(context.Context) view.NodeMetrics { return view.NodeMetrics{Problem: "none"} },
		Events:  func(context.Context, ObjectRef) ([]corev1.Event, error) { return nil, nil },
		Manager: func(context.Context) view.Manager { return view.Manager{Leader: "a"} },
		Actions: actions,
		PodLike: func(context.Context, string, string) (*corev1.Pod, string, error) {
			return nil, "", errors.New("no workload")
		},
	}
	o := Options{About: About{Context: "test"}, Token: testToken, Now: func() time.Time { return noon }, Local: time.UTC}
	m := NewMember(world, cluster, o)
	m.models.forecasts.patience = time.Hour // Pages must wait for their forecast, even on a slow machine.
	return NewSite(m, o)
}

// noMaintenances returns the kind NodeMaintenance without objects.
func noMaintenances() Kind {
	var f fakeKind
	return f.kind(kindMaintenances, &tidekeeperv1.NodeMaintenance{}, &tidekeeperv1.NodeMaintenanceList{}, nil)
}

// memberOf returns the only cluster of a site.
func memberOf(s *Site) *Member {
	m, _ := s.pages.(*Member)
	return m
}

// requestOf returns a request for a page about the site's cluster.
func requestOf(t *testing.T, s *Site, of *snapshot) *request {
	m := memberOf(s)
	return &request{ctx: t.Context(), frame: m.frame, models: m.models, asks: m.models.lookups.questions(t.Context(), of.now), snapshot: of}
}

// send sends a request with the given Host and other headers.
func send(s *Site, method, path, host string, headers map[string]string, body string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	r.Host = host
	for name, value := range headers {
		r.Header.Set(name, value)
	}
	w := httptest.NewRecorder()
	s.Handler().ServeHTTP(w, r)
	return w
}

const ourHost = "127.0.0.1:8123"

func bearer(token string) map[string]string {
	return map[string]string{"Authorization": "Bearer " + token}
}

// routes lists all routes of a site, and whether each requires a token.
var routes = []struct {
	method, path string
	asks         bool // whether the route requires a token
}{
	{"GET", "/", false}, {"GET", "/pools/worker", false}, {"GET", "/capacity", false}, {"GET", "/restarts", false}, {"GET", "/pods", false},
	{"GET", "/-/app.js", false}, {"GET", "/-/app.css", false}, {"GET", "/-/icon.svg", false},
	{"GET", "/-/page/", true}, {"GET", "/-/page/pools/worker", true}, {"GET", "/-/stream/restarts", true}, {"GET", "/overview.json", true}, {"GET", "/pools/worker.json", true}, {"POST", "/-/act", true}, {"POST", "/-/invite", true}, {"POST", "/-/enter", false},
	{"GET", "/nowhere", false}, {"GET", "/-/nowhere", false}, {"GET", "/debug/pprof/", false}, {"GET", "/api/v1/pods", false},
}

// TestForeignHostsGetNothing checks that Host headers other than localhost and loopback addresses
// are rejected. Otherwise, an attacker's website could use a name that resolves to 127.0.0.1, and
// its scripts could read the responses.
func TestForeignHostsGetNothing(t *testing.T) {
	s := newTestSite(t, nil)
	for _, host := range []string{
		"evil.test", "evil.test:8123", "localhost.", "localhost.:8123", "0.0.0.0:8123", "", "127.0.0.2:8123", "127.0.0.1.evil.test", "[::]:8123", "::1",
		"127.0.0.1:", "127.0.0.1:x", "127.0.0.1:0", "127.0.0.1:65536", "localhost:8123@evil.test", "127.1:8123", "2130706433", "LOCALHOST.evil.test", "[127.0.0.1]:8123",
	} {
		for _, route := range routes {
			headers := bearer(testToken)
			headers["X-Forwarded-Host"], headers["Forwarded"] = ourHost, "host="+ourHost
			w := send(s, route.method, route.path, host, headers, "{}")
			if w.Code != http.StatusMisdirectedRequest || w.Body.Len() > 0 {
				t.Errorf("%s %s to %q: %d with %d bytes, want 421 with none", route.method, route.path, host, w.Code, w.Body.Len())
			}
		}
	}
	for _, host := range []string{"127.0.0.1:8123", "localhost:1", "[::1]:65535", "127.0.0.1", "localhost", "[::1]"} {
		if w := send(s, "GET", "/", host, nil, ""); w.Code != http.StatusOK {
			t.Errorf("%q: %d, want 200", host, w.Code)
		}
	}
}

// TestDataNeedsTheToken checks that every route with data requires a valid token.
func TestDataNeedsTheToken(t *testing.T) {
	s := newTestSite(t, nil)
	for _, route := range routes {
		if !route.asks {
			continue
		}
		for name, headers := range map[string]map[string]string{
			"none": nil, "another": bearer(NewToken()), "empty": bearer(""), "a part": bearer(testToken[:42]), "more": bearer(testToken + "x"),
			"another scheme": {"Authorization": "Basic " + testToken}, "a cookie": {"Cookie": "tide-token=" + testToken},
		} {
			for _, path := range []string{route.path, route.path + "?token=" + testToken} {
				if w := send(s, route.method, path, ourHost, headers, ""); w.Code != http.StatusUnauthorized || strings.Contains(w.Body.String(), testToken) {
					t.Errorf("%s %s with token %s: %d %s, want 401", route.method, path, name, w.Code, w.Body)
				}
			}
		}
	}
	if a, b := NewToken(), NewToken(); a == b || len(a) != 43 {
		t.Errorf("tokens %q and %q, want two different ones of 32 bytes", a, b)
	}
}

// TestForeignOriginsAreRefused checks that requests from other websites, from other ports of this
// machine and from other documents are rejected, based on the headers that browsers send.
func TestForeignOriginsAreRefused(t *testing.T) {
	s := newTestSite(t, &fakeActions{})
	navigation := map[string]string{"Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}
	for _, tc := range []struct {
		name          string
		headers       map[string]string
		shell, others bool // whether the shell and other paths respond
	}{
		{"no browser", nil, true, true},
		{"our page", map[string]string{"Origin": "http://" + ourHost, "Sec-Fetch-Site": "same-origin"}, true, true},
		{"another port", map[string]string{"Origin": "http://127.0.0.1:9999", "Sec-Fetch-Site": "same-site"}, false, false},
		{"another name of this machine", map[string]string{"Origin": "http://localhost:8123"}, false, false},
		{"another scheme", map[string]string{"Origin": "https://" + ourHost}, false, false},
		{"no origin", map[string]string{"Origin": "null"}, false, false},
		{"another site without Origin", map[string]string{"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors", "Sec-Fetch-Dest": "image"}, false, false},
		{"a script of another port", map[string]string{"Sec-Fetch-Site": "same-site", "Sec-Fetch-Mode": "no-cors", "Sec-Fetch-Dest": "script"}, false, false},
		{"a frame", map[string]string{"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "iframe"}, false, false},
		{"the address bar", merge(navigation, "Sec-Fetch-Site", "none"), true, false},
		{"a link elsewhere", merge(navigation, "Sec-Fetch-Site", "cross-site"), true, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			for path, want := range map[string]bool{"/": tc.shell, "/-/app.js": tc.others, "/-/page/nowhere": tc.others} {
				headers := merge(tc.headers, "Authorization", "Bearer "+testToken)
				if got := send(s, "GET", path, ourHost, headers, "").Code != http.StatusForbidden; got != want {
					t.Errorf("%s is answered: %v, want %v", path, got, want)
				}
			}
			headers := merge(merge(tc.headers, "Authorization", "Bearer "+testToken), "Content-Type", "application/json")
			if got := send(s, "POST", "/-/act", ourHost, headers, "{}").Code != http.StatusForbidden; got != tc.others {
				t.Errorf("an action is answered: %v, want %v", got, tc.others)
			}
		})
	}
}

func merge(a map[string]string, name, value string) map[string]string {
	b := map[string]string{name: value}
	for k, v := range a {
		b[k] = v
	}
	return b
}

// TestHeadersOfEveryAnswer checks that every response, including errors, has the security headers,
// and that none allows another origin.
func TestHeadersOfEveryAnswer(t *testing.T) {
	s := newTestSite(t, nil)
	for _, host := range []string{ourHost, "evil.test"} {
		for _, route := range append(routes, routes[0], struct {
			method, path string
			asks         bool
		}{"OPTIONS", "/-/act", false}) {
			w := send(s, route.method, route.path, host, nil, "")
			for name, want := range headers {
				if got := w.Header().Get(name); got != want {
					t.Errorf("%s %s to %s: %s is %q, want %q", route.method, route.path, host, name, got, want)
				}
			}
			for name := range w.Header() {
				if strings.HasPrefix(name, "Access-Control-") || name == "Set-Cookie" {
					t.Errorf("%s %s to %s has %s", route.method, route.path, host, name)
				}
			}
		}
	}
	for _, directive := range []string{"default-src 'none'", "script-src 'self'", "style-src 'self'", "frame-ancestors 'none'", "base-uri 'none'", "form-action 'none'", "require-trusted-types-for 'script'"} {
		if !strings.Contains(policy, directive) {
			t.Errorf("the policy lacks %s", directive)
		}
	}
	for _, method := range []string{"OPTIONS", "PUT", "DELETE", "PATCH", "TRACE", "CONNECT"} {
		if w := send(s, method, "/-/act", ourHost, bearer(testToken), ""); w.Code != http.StatusMethodNotAllowed {
			t.Errorf("%s: %d, want 405", method, w.Code)
		}
	}
}

// TestShellHasNoDataAndIsSmall checks that the responses without authentication are small embedded
// files, which are the same on every site.
func TestShellHasNoDataAndIsSmall(t *testing.T) {
	s := newTestSite(t, nil)
	sizes := map[string]int{}
	for _, path := range []string{"/", "/-/app.js", "/-/app.css", "/-/icon.svg"} {
		w := send(s, "GET", path, ourHost, nil, "")
		if w.Code != http.StatusOK || strings.Contains(w.Body.String(), testToken) {
			t.Errorf("%s: %d", path, w.Code)
		}
		var packed bytes.Buffer
		z := gzip.NewWriter(&packed)
		_, _ = z.Write(w.Body.Bytes())
		_ = z.Close()
		sizes[path] = packed.Len()
		sizes["all"] += w.Body.Len()
	}
	if own := sizes["/-/app.js"] + sizes["/-/app.css"]; own > 15_000 {
		t.Errorf("script and style are %d bytes gzipped, want at most 15 kB", own)
	}
	if sizes["all"] > 60_000 {
		t.Errorf("the shell is %d bytes in all, want at most 60 kB", sizes["all"])
	}
	if a, b := send(s, "GET", "/", ourHost, nil, "").Body.String(), send(s, "GET", "/pools/any", ourHost, nil, "").Body.String(); a != b {
		t.Error("the shell depends on the address")
	}
}

// TestNoOtherPaths checks that no other paths are served, such as a profiler, expvar, the API
// server or files.
func TestNoOtherPaths(t *testing.T) {
	s := newTestSite(t, nil)
	for _, path := range []string{
		"/debug/pprof/", "/debug/pprof/heap", "/debug/vars", "/metrics", "/healthz", "/api", "/api/v1/pods", "/apis/tidekeeper.dev/v1/nodepools", "/version",
		"/-/shell.html", "/-/assets/app.js", "/-/page/api/v1/pods", "/-/page/pools/a/b", "/-/stream/nowhere", "/-/..%2fguard.go", "/pools/a%2fb/c", "/api.json", "/debug/pprof/heap.json",
	} {
		if w := send(s, "GET", path, ourHost, bearer(testToken), ""); w.Code != http.StatusNotFound {
			t.Errorf("%s: %d with %d bytes, want 404", path, w.Code, w.Body.Len())
		}
	}
	// A mistyped address in the address bar must not look as if access were denied.
	typed := map[string]string{"Sec-Fetch-Site": "none", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}
	if w := send(s, "GET", "/restart", ourHost, typed, ""); w.Code != http.StatusNotFound {
		t.Errorf("a mistyped address: %d, want 404", w.Code)
	}
}

// TestBodiesEnd checks that the server closes the connection of a client that does not send the
// announced request body, with or without a token.
func TestBodiesEnd(t *testing.T) {
	t.Parallel()
	s := newTestSite(t, nil)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = s.Serve(t.Context(), listener) }()
	var conns []net.Conn
	for _, token := range []string{testToken, "another"} {
		conn, err := net.Dial("tcp", listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if _, err := fmt.Fprintf(conn, "POST /-/act HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nContent-Length: 60000\r\n\r\n{", listener.Addr(), token); err != nil {
			t.Fatal(err)
		}
		conns = append(conns, conn)
	}
	for _, conn := range conns {
		// The server must close the connection.
		if _, err := io.Copy(io.Discard, conn); err != nil && !errors.Is(err, syscall.ECONNRESET) {
			t.Error(err)
		}
	}
}
