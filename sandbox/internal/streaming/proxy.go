// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package streaming

import (
	"bufio"
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"time"

	"tidekeeper.dev/tidekeeper/sandbox/internal/realnode"
)

// Proxy is an HTTP proxy that connects a program to the simulated kubelets, because the addresses
// of their nodes do not exist on this machine. It connects requests for other addresses directly.
type Proxy struct {
	// URL is the address of the proxy. It contains a password, which is required because other
	// local users can connect, too.
	URL    *url.URL
	socket string
	server *http.Server
}

// NewProxy starts a proxy for the kubelets that serve the given socket.
func NewProxy(ctx context.Context, socket string) (*Proxy, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("the proxy to the kubelets: %w", err)
	}
	p := &Proxy{socket: socket, URL: &url.URL{Scheme: "http", User: url.UserPassword("program", rand.Text()), Host: listener.Addr().String()}}
	p.server = &http.Server{Handler: p, ReadHeaderTimeout: 30 * time.Second}
	go func() { _ = p.server.Serve(listener) }()
	return p, nil
}

// Close stops the proxy.
func (p *Proxy) Close() error { return p.server.Close() }

// ServeHTTP opens a tunnel to the address in a CONNECT request.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	want := "Basic " + base64.StdEncoding.EncodeToString([]byte(p.URL.User.String()))
	if subtle.ConstantTimeCompare([]byte(r.Header.Get("Proxy-Authorization")), []byte(want)) == 0 {
		http.Error(w, "this proxy is for a program that 'sandbox run --kubelets' runs", http.StatusProxyAuthRequired)
		return
	}
	_, port, err := net.SplitHostPort(r.Host)
	if r.Method != http.MethodConnect || err != nil {
		http.Error(w, "want CONNECT to HOST:PORT", http.StatusBadRequest)
		return
	}
	other, buffered, err := p.dial(r.Context(), r.Host, port)
	realnode.Tunnel(w, &tunnel{Conn: other, buffered: buffered}, err)
}

// dial connects to a kubelet through the kubelets' socket, or to any other address directly.
func (p *Proxy) dial(ctx context.Context, address, port string) (net.Conn, *bufio.Reader, error) {
	if port != kubeletPort {
		connection, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
		if err != nil {
			return nil, nil, err
		}
		return connection, bufio.NewReader(connection), nil
	}
	connection, err := (&net.Dialer{}).DialContext(ctx, "unix", p.socket)
	if err != nil {
		return nil, nil, err
	}
	buffered := bufio.NewReader(connection)
	err = requestTunnel(connection, buffered, address)
	if err != nil {
		connection.Close()
		return nil, nil, fmt.Errorf("the kubelet at %s: %w", address, err)
	}
	return connection, buffered, nil
}

// requestTunnel asks the server behind the kubelets' socket for a tunnel to a kubelet. The kubelet
// authorizes each request in the tunnel.
func requestTunnel(connection net.Conn, buffered *bufio.Reader, address string) error {
	if _, err := fmt.Fprintf(connection, "CONNECT %s HTTP/1.1\r\nHost: %s\r\n%s: yes\r\n\r\n", address, address, AskHeader); err != nil {
		return err
	}
	answer, err := http.ReadResponse(buffered, &http.Request{Method: http.MethodConnect})
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("%s", answer.Status)
	}
	return nil
}
