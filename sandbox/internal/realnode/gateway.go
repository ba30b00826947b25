// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package realnode

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"time"

	"tidekeeper.dev/tidekeeper/sandbox/internal/socket"
)

// gateway connects a node's network with the API server's network.
type gateway struct {
	spec Spec
	// outside is a handle of the API server's network namespace.
	outside *os.File
	// load imports an image archive into the node.
	load func(file string) error
}

// serveAPI forwards connections from pods and the kubelet to the API server.
func (g *gateway) serveAPI(ctx context.Context) error {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp4", net.JoinHostPort(g.spec.Service, "443"))
	if err != nil {
		return err
	}
	go func() {
		for {
			inside, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer inside.Close()
				outside, err := dialOutside(ctx, g.outside, g.spec.APIServer)
				if err != nil {
					return // Closing the connection is the only way to report the error to the client.
				}
				Join(inside, outside, inside)
			}()
		}
	}()
	return nil
}

// serveSocket serves the node's socket. The API server uses it to open tunnels to the kubelet and
// to pods; sandbox commands use it to import images.
func (g *gateway) serveSocket(ctx context.Context) error {
	_ = os.Remove(g.spec.Socket)
	// Only this user may access the socket, because its clients can run any program on the node.
	listener, err := socket.Listen(ctx, g.spec.Socket)
	if err != nil {
		return fmt.Errorf("the socket of the node: %w", err)
	}
	server := &http.Server{ReadHeaderTimeout: 30 * time.Second, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Method == http.MethodConnect:
			g.connect(w, r)
		case r.Method == http.MethodPost && r.URL.Path == "/images":
			if err := g.load(r.URL.Query().Get("file")); err != nil {
				http.Error(w, err.Error(), http.StatusInternalServerError)
			}
		default:
			http.NotFound(w, r)
		}
	})}
	go func() { _ = server.Serve(listener) }()
	return nil
}

// connect opens a tunnel to an address of the node or of its pods.
func (g *gateway) connect(w http.ResponseWriter, r *http.Request) {
	host, _, err := net.SplitHostPort(r.Host)
	if err != nil || !NetworkOf(g.spec.Number).Has(host) {
		http.Error(w, r.Host+" is not on this node", http.StatusBadGateway)
		return
	}
	inside, err := (&net.Dialer{Timeout: dialTimeout}).DialContext(r.Context(), "tcp4", r.Host)
	Tunnel(w, inside, err)
}

// Tunnel responds to an HTTP CONNECT request. If "inside" could not be dialed, the response is the
// given error. Otherwise, Tunnel copies data between the client and "inside" until both directions
// have ended or either has failed, and then closes both connections.
func Tunnel(w http.ResponseWriter, inside net.Conn, err error) {
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	defer inside.Close()
	connection, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	defer connection.Close()
	if _, err := io.WriteString(connection, "HTTP/1.1 200 OK\r\n\r\n"); err != nil {
		return
	}
	Join(connection, inside, buffered.Reader)
}

// Join copies data between the connections a and b until both directions have ended or either has
// failed, and then closes both. It reads the data from a through fromA, which may have buffered
// some of it.
func Join(a, b net.Conn, fromA io.Reader) {
	done := make(chan error, 2)
	go func() { done <- passOn(b, fromA) }()
	go func() { done <- passOn(a, b) }()
	// Wait for both directions, because one side may still send after the other side has closed its
	// sending half. After an error, close both connections immediately.
	for range cap(done) {
		if err := <-done; err != nil {
			break
		}
	}
	a.Close()
	b.Close()
}

// passOn copies data until EOF, and then closes the sending half of the destination. It returns an
// error if the copy fails or the destination has no sending half that can be closed separately.
func passOn(to net.Conn, from io.Reader) error {
	_, err := io.Copy(to, from)
	if half, ok := to.(interface{ CloseWrite() error }); ok && err == nil {
		return half.CloseWrite()
	}
	return errors.Join(err, io.EOF)
}
