// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"tidekeeper.dev/tidekeeper/sandbox/internal/fault"
)

// buffer is a log that can be read while it is written.
type buffer struct {
	mu  sync.Mutex
	all bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.all.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.all.String()
}

// serve starts a proxy in front of a server, and returns how to reach it.
func serve(t *testing.T, upstream *rest.Config, rules ...fault.Rule) (*Server, *rest.Config, *buffer) {
	t.Helper()
	log := &buffer{}
	s, err := Start(Options{Upstream: upstream, Listen: "127.0.0.1:0", Control: "127.0.0.1:0", Rules: rules, Log: log})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	config, err := clientcmd.RESTConfigFromKubeConfig(s.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	return s, config, log
}

// TestUpgrade: a connection that changes to another protocol, as those of exec
// and port-forward do, passes in both directions.
func TestUpgrade(t *testing.T) {
	upstream := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Upgrade") != "SPDY/3.1" || r.ProtoMajor != 1 {
			http.Error(w, fmt.Sprintf("%s, upgrade %q", r.Proto, r.Header.Get("Upgrade")), http.StatusBadRequest)
			return
		}
		conn, stream, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		fmt.Fprint(stream, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\r\n")
		_ = stream.Flush()
		line, _ := stream.ReadString('\n')
		fmt.Fprint(stream, "echo "+line)
		_ = stream.Flush()
	}))
	upstream.EnableHTTP2 = true
	upstream.StartTLS()
	defer upstream.Close()
	s, config, _ := serve(t, &rest.Config{Host: upstream.URL, TLSClientConfig: rest.TLSClientConfig{Insecure: true}})

	tlsConfig, err := rest.TLSConfigFor(config)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := tls.Dial("tcp", strings.TrimPrefix(s.URL, "https://"), tlsConfig)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprint(conn, "POST /api/v1/namespaces/shop/pods/web/exec HTTP/1.1\r\nHost: proxy\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\nContent-Length: 0\r\n\r\n")
	reader := bufio.NewReader(conn)
	response, err := http.ReadResponse(reader, nil)
	if err != nil || response.StatusCode != http.StatusSwitchingProtocols {
		t.Fatalf("%v, %v", response, err)
	}
	response.Body.Close()
	fmt.Fprint(conn, "hello\n")
	if line, err := reader.ReadString('\n'); err != nil || line != "echo hello\n" {
		t.Errorf("came back: %q, %v", line, err)
	}
}

// TestNoAPIServer: its clients see a connection that breaks, as they would
// without the proxy, and the log says why.
func TestNoAPIServer(t *testing.T) {
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed.Close()
	s, config, log := serve(t, &rest.Config{Host: "http://" + closed.Addr().String()})
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	response, err := client.Get(s.URL + "/api/v1/nodes")
	if err == nil {
		response.Body.Close()
		t.Errorf("the answer: %s", response.Status)
	}
	if text := log.String(); !strings.Contains(text, `"resource":"nodes"`) || !strings.Contains(text, "connection refused") || strings.Contains(text, `"status"`) {
		t.Errorf("logged: %s", text)
	}
}

// TestHTTP2: clients speak HTTP/2 to the proxy, so that one connection carries
// all watches, as with an API server.
func TestHTTP2(t *testing.T) {
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, r.UserAgent())
	}))
	defer upstream.Close()
	s, config, _ := serve(t, &rest.Config{Host: upstream.URL})
	config.UserAgent = "somebody/1.0"
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	response, err := client.Get(s.URL + "/version")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if agent, err := io.ReadAll(response.Body); err != nil || response.ProtoMajor != 2 || string(agent) != "somebody/1.0" {
		t.Errorf("%s, the API server sees %q, %v", response.Proto, agent, err)
	}
}
