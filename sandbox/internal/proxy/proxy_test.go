// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"tidekeeper.dev/tidekeeper/sandbox/internal/fault"
)

// buffer collects log output. It can be read while the proxy writes to it.
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

// serve starts a proxy in front of an API server. It returns the proxy, a client configuration and
// the proxy's log.
func serve(t *testing.T, upstream *rest.Config, rules ...fault.Rule) (*Server, *rest.Config, *buffer) {
	t.Helper()
	log := &buffer{}
	dir, err := os.MkdirTemp("", "proxy-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	control := filepath.Join(dir, "control")
	s, err := Start(Options{Upstream: upstream, Listen: "127.0.0.1:0", Control: control, Rules: rules, Log: log})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	controlOf.Store(s, control)
	config, err := clientcmd.RESTConfigFromKubeConfig(s.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	return s, config, log
}

// TestUpgrade checks that data passes in both directions after a protocol upgrade, which exec and
// port-forward use.
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

// TestNoAPIServer checks that clients see a broken connection while the API server is down, as they
// would without the proxy, and that the reason is logged.
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

// TestHTTP2 checks that clients use HTTP/2 with the proxy as they do with an API server, so that a
// single connection carries all watches.
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

// TestLostAnswerEnds checks that a request whose client no longer waits is canceled if the API
// server does not respond.
func TestLostAnswerEnds(t *testing.T) {
	hanging := make(chan struct{}, 100)
	upstream := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		<-r.Context().Done()
		hanging <- struct{}{}
	}))
	defer upstream.Close()
	ask := func(timeout time.Duration) {
		p, err := New(&rest.Config{Host: upstream.URL}, fault.NewRuleSet(), io.Discard)
		if err != nil {
			t.Fatal(err)
		}
		if err := p.rules.Add(fault.Rule{Name: "lose", Fault: fault.Fault{Kind: fault.LoseAnswer}}); err != nil {
			t.Fatal(err)
		}
		p.detachedTimeout = timeout
		front := httptest.NewServer(p)
		defer front.Close()
		if response, err := http.Get(front.URL + "/api/v1/nodes"); err == nil {
			response.Body.Close()
			t.Errorf("answered: %s", response.Status)
		}
	}
	// On a busy machine, the request may time out before it reaches the API server.
	for timeout := 50 * time.Millisecond; ; timeout *= 2 {
		ask(timeout)
		select {
		case <-hanging:
			return
		case <-time.After(timeout):
		}
	}
}

// TestSlowClient checks that the proxy closes a watch whose client does not read, as an API server
// does.
func TestSlowClient(t *testing.T) {
	// The response exceeds all buffers between the proxy and a client with a small receive buffer.
	much := make([]byte, 16<<20)
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/cbor-seq")
		_, _ = w.Write(much)
		<-r.Context().Done()
	}))
	defer upstream.Close()
	for _, h2 := range []bool{false, true} {
		log := &buffer{}
		p, err := New(&rest.Config{Host: upstream.URL}, fault.NewRuleSet(), log)
		if err != nil {
			t.Fatal(err)
		}
		p.writeTimeout = time.Second
		front := httptest.NewUnstartedServer(p)
		front.EnableHTTP2 = h2
		front.StartTLS()
		front.Client().Transport.(*http.Transport).DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
			connection, err := (&net.Dialer{}).DialContext(ctx, network, address)
			if err == nil {
				err = connection.(*net.TCPConn).SetReadBuffer(64 << 10)
			}
			return connection, err
		}
		response, err := front.Client().Get(front.URL + "/api/v1/nodes?watch=true")
		if err != nil {
			t.Fatal(err)
		}
		await(t, func() string {
			if text := log.String(); !strings.Contains(text, errSlow.Error()) {
				return fmt.Sprintf("h2 %t: logged: %s", h2, text)
			}
			if open := p.streams.matching(fault.Match{}); len(open) > 0 {
				return fmt.Sprintf("h2 %t: the watch is still open", h2)
			}
			return ""
		})
		response.Body.Close()
		front.Close()
	}
}

// stuck is a log writer that blocks until read is closed.
type stuck struct{ read chan struct{} }

func (s stuck) Write(p []byte) (int, error) {
	<-s.read
	return len(p), nil
}

// TestUnreadLog checks that writing to a Backlog never blocks, and that the number of dropped lines
// is logged.
func TestUnreadLog(t *testing.T) {
	out := &buffer{}
	gate := stuck{make(chan struct{})}
	b := NewBacklog(io.MultiWriter(gate, out))
	for i := range backlogLines + 100 {
		if _, err := fmt.Fprintln(b, i); err != nil {
			t.Fatal(err)
		}
	}
	close(gate.read)
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	// Close waits only for a second. If the machine stalls, the lines are written later.
	await(t, func() string {
		if text := out.String(); !strings.HasPrefix(text, "0\n") || !strings.Contains(text, `{"dropped":`) {
			return fmt.Sprintf("logged: %.100s", text)
		}
		return ""
	})
}
