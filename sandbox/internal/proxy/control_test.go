// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/prometheus/procfs"
	"k8s.io/client-go/rest"
)

// controlOf maps each *Server to the path of its control socket.
var controlOf sync.Map

// control returns an HTTP client for the proxy's control API.
func control(t *testing.T, s *Server) *http.Client {
	t.Helper()
	file, ok := controlOf.Load(s)
	if !ok {
		t.Fatal("it has no API of its own")
	}
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", file.(string))
	}}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

// post sends a body to the proxy's control API and decodes the JSON response.
func post(t *testing.T, s *Server, path, body string, answer any) {
	t.Helper()
	response, err := control(t, s).Post("http://proxy"+path, "", strings.NewReader(body))
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

// TestFrozenAtOnce checks that a watch is reported as frozen as soon as a rule would hold back its
// next event, even before that event arrives.
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
	post(t, s, "/freeze", "match: {resources: [nodes]}", &struct{}{})
	if open := watches(t, s); len(open) != 1 || !open[0].Frozen || open[0].Waiting != 0 {
		t.Errorf("after freeze: %+v", open)
	}
	post(t, s, "/thaw", "", &struct{}{})
	if open := watches(t, s); len(open) != 1 || open[0].Frozen {
		t.Errorf("after thaw: %+v", open)
	}
}

// TestUnknownResources checks that a rule for a resource that the API server does not serve is
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
		post(t, s, "/rules", fmt.Sprintf("rules: [{name: r%d, match: {resources: [%s]}, fault: {kind: Close}}]", i, tc.resources), &answer)
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
	post(t, s, "/rules", "rules: [{name: gone, match: {resources: [podz]}, fault: {kind: Close}}]", &answer)
	if answer.Warnings != nil {
		t.Errorf("without an API server: warnings %q", answer.Warnings)
	}
}

// TestNoControl checks that a proxy without a control socket listens on only a single TCP port.
func TestNoControl(t *testing.T) {
	before := listening(t)
	s, err := Start(Options{Upstream: &rest.Config{Host: "http://127.0.0.1:1"}, Listen: "127.0.0.1:0", Log: io.Discard})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	if now := listening(t); now != before+1 {
		t.Errorf("it listens on %d ports, want 1", now-before)
	}
}

// listening returns the number of TCP ports on 127.0.0.1 that this process listens on.
func listening(t *testing.T) int {
	t.Helper()
	fs, err := procfs.NewDefaultFS()
	if err != nil {
		t.Fatal(err)
	}
	self, err := fs.Self()
	if err != nil {
		t.Fatal(err)
	}
	open, err := self.FileDescriptorTargets()
	if err != nil {
		t.Fatal(err)
	}
	sockets, err := os.ReadFile("/proc/self/net/tcp")
	if err != nil {
		t.Fatal(err)
	}
	count := 0
	for line := range strings.Lines(string(sockets)) {
		const state, listens, inode = 3, "0A", 9
		if fields := strings.Fields(line); len(fields) > inode && fields[state] == listens && slices.Contains(open, "socket:["+fields[inode]+"]") {
			count++
		}
	}
	return count
}

// TestControlIsPrivate checks that the control API listens on a Unix socket with mode 0600. The
// socket of a killed proxy is replaced, but neither a socket in use nor any other file is.
func TestControlIsPrivate(t *testing.T) {
	file := filepath.Join(t.TempDir(), "control")
	left, err := net.ListenUnix("unix", &net.UnixAddr{Name: file, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	left.SetUnlinkOnClose(false)
	left.Close()
	o := Options{Upstream: &rest.Config{Host: "http://127.0.0.1:1"}, Listen: "127.0.0.1:0", Control: file, Log: io.Discard}
	s, err := Start(o)
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(file); err != nil || info.Mode() != os.ModeSocket|0o600 {
		t.Errorf("%v, %v: want a socket with the mode 0600", info, err)
	}
	if _, err := Start(o); err == nil || !strings.Contains(err.Error(), "--control: a process listens on "+file+" already") {
		t.Errorf("a second one: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(file); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("it is left: %v", err)
	}
	if err := os.WriteFile(file, []byte("of a user"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Start(o); err == nil {
		t.Error("a file that is none of a proxy is replaced")
	}
	if text, err := os.ReadFile(file); err != nil || string(text) != "of a user" {
		t.Errorf("the file has %q, %v", text, err)
	}
}
