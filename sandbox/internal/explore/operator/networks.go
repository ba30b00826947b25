// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"sync"
	"time"

	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/observe"
	"tidekeeper.dev/tidekeeper/sandbox/internal/incluster"
	"tidekeeper.dev/tidekeeper/sandbox/internal/realnode"
	"tidekeeper.dev/tidekeeper/sandbox/internal/socket"
)

// Networks lists the network namespaces of the operator's running processes, in order of process
// start.
type Networks struct {
	mu  sync.Mutex
	all []*incluster.Network
}

func (n *Networks) add(network *incluster.Network) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.all = append(n.all, network)
}

func (n *Networks) remove(network *incluster.Network) {
	network.Close()
	n.mu.Lock()
	defer n.mu.Unlock()
	n.all = slices.DeleteFunc(n.all, func(other *incluster.Network) bool { return other == network })
}

// answering is the timeout for connecting to a port of the operator, whose process may have just
// started. It is shorter than an API server's timeout for webhooks.
const answering = 8 * time.Second

// dial connects to a port of the operator. If several processes listen on the port, it connects to
// the most recently started process. While no process listens, dial waits, because a Service routes
// traffic only to ready Pods.
func (n *Networks) dial(ctx context.Context, port int) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, answering)
	defer cancel()
	for {
		n.mu.Lock()
		all := slices.Clone(n.all)
		n.mu.Unlock()
		for _, network := range slices.Backward(all) {
			if connection, err := network.Dial(ctx, port); err == nil {
				return connection, nil
			}
		}
		select {
		case <-time.After(observe.Look):
		case <-ctx.Done():
			return nil, fmt.Errorf("the operator does not listen on port %d", port)
		}
	}
}

// ServeHTTP opens tunnels (HTTP CONNECT) from the API server to the operator.
func (n *Networks) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_, text, err := net.SplitHostPort(r.Host)
	port, notNumber := strconv.Atoi(text)
	if r.Method != http.MethodConnect || err != nil || notNumber != nil {
		http.Error(w, "want CONNECT to HOST:PORT", http.StatusBadRequest)
		return
	}
	program, err := n.dial(r.Context(), port)
	realnode.Tunnel(w, program, err)
}

// Serve lets a sandbox's API server connect to the operator through a Unix socket at the given
// path, until the returned function is called.
func (n *Networks) Serve(ctx context.Context, path string) (end func(), _ error) {
	_ = os.Remove(path)
	listener, err := socket.Listen(ctx, path)
	if err != nil {
		return nil, err
	}
	server := &http.Server{Handler: n, ReadHeaderTimeout: answering}
	go func() { _ = server.Serve(listener) }()
	return func() { _ = server.Close() }, nil
}
