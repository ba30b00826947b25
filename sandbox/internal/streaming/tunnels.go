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

// connect opens a tunnel to a simulated kubelet, to a real node or its pods, or to a program that
// runs as a pod. All other addresses are unreachable.
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

// passOn opens a tunnel through another Unix socket, whose server connects to the given address.
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

// tunnel is a connection to a simulated kubelet. Its first bytes may already be buffered.
type tunnel struct {
	net.Conn
	buffered *bufio.Reader
	// host is the name or address of the node. ask is set if the kubelet must authorize each
	// request.
	host string
	ask  bool
}

// Read reads from the tunnel, beginning with the bytes that are already buffered.
func (t *tunnel) Read(b []byte) (int, error) { return t.buffered.Read(b) }

// queue is a net.Listener for tunnels that have already been established.
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

// Accept returns the next tunnel.
func (q *queue) Accept() (net.Conn, error) {
	select {
	case c := <-q.connections:
		return c, nil
	case <-q.closed:
		return nil, net.ErrClosed
	}
}

// Close does nothing, because the queue ends when its context is done.
func (q *queue) Close() error { return nil }

// Addr returns the address of the kubelets' Unix socket.
func (q *queue) Addr() net.Addr { return q.address }
