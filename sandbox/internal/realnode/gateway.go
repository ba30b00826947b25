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

// gateway connects the network of a node with the outside.
type gateway struct {
	spec Spec
	// outside is the network namespace of the API server.
	outside *os.File
	// load imports an image archive.
	load func(file string) error
}

// serveAPI forwards connections of pods and the kubelet to the API server.
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
					return // The client sees a closed connection.
				}
				Join(inside, outside, inside)
			}()
		}
	}()
	return nil
}

// serveSocket serves the node's socket: tunnels for the API server to the kubelet and to pods, and images to
// import.
func (g *gateway) serveSocket(ctx context.Context) error {
	_ = os.Remove(g.spec.Socket)
	// Restrict the socket to this user: its clients can run any program on the node.
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

// Tunnel answers a request for a tunnel (HTTP CONNECT) through a connection, or with the error of
// dialing. It copies until either side ends, and closes the connection.
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

// Join copies data between two connections until either of them closes. fromA reads from a, and may have
// buffered data.
func Join(a, b net.Conn, fromA io.Reader) {
	done := make(chan error, 2)
	go func() { done <- passOn(b, fromA) }()
	go func() { done <- passOn(a, b) }()
	// One side may close its sending half while the other still sends; after an error, both are closed.
	for range cap(done) {
		if err := <-done; err != nil {
			break
		}
	}
	a.Close()
	b.Close()
}

// passOn copies data until EOF, and then closes the sending half of the destination.
func passOn(to net.Conn, from io.Reader) error {
	_, err := io.Copy(to, from)
	if half, ok := to.(interface{ CloseWrite() error }); ok && err == nil {
		return half.CloseWrite()
	}
	return errors.Join(err, io.EOF)
}
