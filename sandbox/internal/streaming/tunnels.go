// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package streaming

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"

	"tidekeeper.dev/tidekeeper/sandbox/internal/realnode"
)

// connect opens a tunnel to the kubelet of a node, to a real node and its pods, or to a program that runs as
// a pod. Other addresses are unreachable.
func connect(tunnels *queue, realNodes []string, programs *programs) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host, port, err := net.SplitHostPort(r.Host)
		if number := realnode.NumberOf(host); r.Method == http.MethodConnect && err == nil && number > 0 && number <= len(realNodes) {
			address := r.Host
			if host == realnode.Name(number) {
				address = net.JoinHostPort(realnode.NetworkOf(number).Node.String(), port)
			}
			passOn(w, r, realNodes[number-1], address)
			return
		}
		if r.Method != http.MethodConnect || err != nil {
			http.Error(w, fmt.Sprintf("%s: want CONNECT to HOST:PORT", r.Host), http.StatusBadRequest)
			return
		}
		if port != kubeletPort {
			connectProgram(w, r, programs, host, port)
			return
		}
		connection, buffered, err := http.NewResponseController(w).Hijack()
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		if _, err := io.WriteString(connection, "HTTP/1.1 200 OK\r\n\r\n"); err != nil {
			connection.Close()
			return
		}
		tunnels.push(&tunnel{Conn: connection, buffered: buffered.Reader, host: host, ask: r.Header.Get(AskHeader) != ""})
	})
}

// passOn opens a tunnel through another socket, whose server opens the rest of it.
func passOn(w http.ResponseWriter, r *http.Request, socket, address string) {
	node, err := (&net.Dialer{}).DialContext(r.Context(), "unix", socket)
	if err == nil {
		defer node.Close()
		_, err = fmt.Fprintf(node, "CONNECT %s HTTP/1.1\r\nHost: %s\r\n\r\n", address, address)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	connection, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	defer connection.Close()
	realnode.Join(connection, node, buffered.Reader)
}

// connectProgram opens a tunnel to a program of this machine that runs as a pod.
func connectProgram(w http.ResponseWriter, r *http.Request, programs *programs, host, port string) {
	address, err := programs.address(r.Context(), host, port)
	if err != nil {
		http.Error(w, "pods and services on simulated nodes cannot be reached: "+err.Error(), http.StatusBadGateway)
		return
	}
	if _, err := os.Stat(programs.Socket); err == nil {
		passOn(w, r, programs.Socket, address)
		return
	}
	program, err := (&net.Dialer{}).DialContext(r.Context(), "tcp", address)
	realnode.Tunnel(w, program, err)
}

// tunnel is a connection to a node, with data that was already read.
type tunnel struct {
	net.Conn
	buffered *bufio.Reader
	// host is the node, by name or address. ask is set if its kubelet must authorize each request.
	host string
	ask  bool
}

// Read reads buffered data first.
func (t *tunnel) Read(b []byte) (int, error) { return t.buffered.Read(b) }

// queue is a net.Listener for connections that are already established.
type queue struct {
	connections chan net.Conn
	closed      <-chan struct{}
	address     net.Addr
}

func (q *queue) push(c net.Conn) {
	select {
	case q.connections <- c:
	case <-q.closed:
		c.Close()
	}
}

// Accept returns the next connection.
func (q *queue) Accept() (net.Conn, error) {
	select {
	case c := <-q.connections:
		return c, nil
	case <-q.closed:
		return nil, net.ErrClosed
	}
}

// Close does nothing: the queue ends with its context.
func (q *queue) Close() error { return nil }

// Addr returns the address of the socket.
func (q *queue) Addr() net.Addr { return q.address }
