// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"bufio"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"tidekeeper.dev/tidekeeper/sandbox/client"
	"tidekeeper.dev/tidekeeper/sandbox/internal/fault"
)

// await polls the function `missing`, which describes the unmet condition, until it returns "".
func await(t *testing.T, missing func() string) {
	t.Helper()
	if err := client.Wait(t.Context(), 2*time.Minute, "nothing is missing", func() error {
		if what := missing(); what != "" {
			return errors.New(what)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
}

// watched starts an API server whose watches send the given bytes, and then stay open until the
// client disconnects.
func watched(t *testing.T, contentType string, begin []byte) *rest.Config {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", contentType)
		_, _ = w.Write(begin)
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}))
	t.Cleanup(server.Close)
	return &rest.Config{Host: server.URL}
}

// watches lists the open watches through the control API.
func watches(t *testing.T, s *Server) []watch {
	t.Helper()
	response, err := control(t, s).Get("http://proxy/watches")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	var list struct{ Watches []watch }
	if err := json.NewDecoder(response.Body).Decode(&list); err != nil {
		t.Fatal(err)
	}
	return list.Watches
}

// TestWatchWhoseClientGoes checks that a watch ends and is logged when its client disconnects, even
// while a rule freezes or delays its events.
func TestWatchWhoseClientGoes(t *testing.T) {
	upstream := watched(t, "application/json", append(event(t, false, "ADDED", "one", nil), event(t, false, "ADDED", "two", nil)...))
	second := fault.Events{Names: []string{"two"}}
	for name, rules := range map[string][]fault.Rule{
		"idle":   nil,
		"frozen": {{Name: "freeze", Events: second, Fault: fault.Fault{Kind: fault.Freeze}}},
		"late":   {{Name: "late", Events: second, Fault: fault.Fault{Kind: fault.DelayEvent, For: fault.Duration(time.Hour)}}},
	} {
		for _, version := range []string{"h2", "http/1.1"} {
			t.Run(name+" "+version, func(t *testing.T) {
				s, config, log := serve(t, upstream, rules...)
				config.NextProtos = []string{version}
				client, err := rest.HTTPClientFor(config)
				if err != nil {
					t.Fatal(err)
				}
				for range 20 {
					ctx, leave := context.WithCancel(t.Context())
					request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL+"/api/v1/nodes?watch=true", nil)
					if err != nil {
						t.Fatal(err)
					}
					response, err := client.Do(request)
					if err != nil {
						t.Fatal(err)
					}
					if _, err := bufio.NewReader(response.Body).ReadString('\n'); err != nil {
						t.Fatal(err)
					}
					leave()
					response.Body.Close()
				}
				await(t, func() string {
					if open := watches(t, s); len(open) > 0 {
						return fmt.Sprintf("open watches: %+v", open)
					}
					if lines := strings.Count(log.String(), `"upstream":200`); lines != 20 {
						return fmt.Sprintf("%d lines in the log, want 20", lines)
					}
					return ""
				})
			})
		}
	}
}

// TestWatchIsNotCompressed checks that rules can match events even if the API server compresses
// watches for clients that accept compression, as Kubernetes 1.37 does.
func TestWatchIsNotCompressed(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		const event = `{"type":"ADDED","object":{"metadata":{"name":"n"}}}`
		w.Header().Set("Content-Type", "application/json")
		if !strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
			_, _ = io.WriteString(w, event)
			return
		}
		w.Header().Set("Content-Encoding", "gzip")
		compressed := gzip.NewWriter(w)
		_, _ = io.WriteString(compressed, event)
		_ = compressed.Close()
	}))
	t.Cleanup(server.Close)
	s, config, log := serve(t, &rest.Config{Host: server.URL},
		fault.Rule{Name: "twice", Events: fault.Events{Names: []string{"n"}}, Fault: fault.Fault{Kind: fault.DuplicateEvent}})
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	response, err := client.Get(s.URL + "/api/v1/nodes?watch=true")
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(response.Body)
	response.Body.Close()
	if err != nil || strings.Count(string(text), "ADDED") != 2 {
		t.Errorf("the client got %q, %v, want the event twice\n%s", text, err, log)
	}
}

// TestWatchOfUnknownEncoding checks that ExpireWatch cuts a stream with an unknown encoding,
// because it cannot encode an ERROR event.
func TestWatchOfUnknownEncoding(t *testing.T) {
	upstream := watched(t, "application/cbor-seq", []byte("anything"))
	s, config, log := serve(t, upstream,
		fault.Rule{Name: "expire", Events: fault.Events{Types: []string{"*"}}, Fault: fault.Fault{Kind: fault.ExpireWatch}})
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	// The connection may be closed before the client has received the response headers.
	if response, err := client.Get(s.URL + "/api/v1/nodes?watch=true"); err == nil {
		text, err := io.ReadAll(response.Body)
		response.Body.Close()
		if err == nil || len(text) > 0 {
			t.Errorf("the client got %q, %v", text, err)
		}
	}
	await(t, func() string {
		if text := log.String(); !strings.Contains(text, `"fault":"CutWatch","rule":"expire"`) {
			return "logged: " + text
		}
		return ""
	})
}
