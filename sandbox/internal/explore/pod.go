// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"context"
	"fmt"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"tidekeeper.dev/tidekeeper/sandbox/internal/incluster"
	"tidekeeper.dev/tidekeeper/sandbox/internal/realnode"
	"tidekeeper.dev/tidekeeper/sandbox/internal/socket"
)

// makePod makes the operator's Pod in the prepared state, as that of the Deployment or StatefulSet
// whose account it has, and has the API server call its webhooks there. Without a node, there is
// no Pod.
func (l *lab) makePod(ctx context.Context, s *sandbox, command []string) error {
	if *l.workload.Nodes == 0 {
		return nil
	}
	o := incluster.Options{Config: s.config, Program: command, From: l.from}
	o.ServiceAccount = types.NamespacedName{Namespace: corev1.NamespaceDefault, Name: defaultAccount}
	if namespace, name, named := strings.Cut(l.account, "/"); named {
		o.ServiceAccount = types.NamespacedName{Namespace: namespace, Name: name}
	}
	pod, environment, warning, err := incluster.MakePod(ctx, o)
	if err != nil && ctx.Err() == nil {
		// As if it ran outside of the cluster.
		l.warnings = append(l.warnings, fmt.Sprintf("the operator has no Pod, and its webhooks are not served: %v", err))
		return nil
	}
	if err != nil {
		return err
	}
	if warning != nil {
		l.warnings = append(l.warnings, fmt.Sprintf("the operator does not have the environment of the container in %s: %v", l.from, warning))
	}
	l.environment, l.hostName = environment, pod.Name
	l.served, err = incluster.ServeWebhooks(ctx, s.config, pod, l.certs())
	return err
}

// certs is where the certificate is by which the operator serves webhooks.
func (l *lab) certs() string { return filepath.Join(l.dir, "certs") }

// unserved warns of webhooks that call a Service which does not select the operator's Pod.
func (l *lab) unserved(ctx context.Context, client dynamic.Interface) error {
	called, err := incluster.CalledServices(ctx, client)
	if err != nil {
		return err
	}
	maps.DeleteFunc(called, func(service types.NamespacedName, _ string) bool { return l.served[service] && !l.alone })
	for _, service := range slices.SortedFunc(maps.Keys(called), func(a, b types.NamespacedName) int { return strings.Compare(a.String(), b.String()) }) {
		l.warnings = append(l.warnings, fmt.Sprintf("a webhook of %s calls the Service %s, which no one serves here: leave it out of what is installed", called[service], service))
	}
	return nil
}

// pod is what a process of the operator finds around it, with the files that its account has in a
// directory.
func (l *lab) pod(dir string, files incluster.Files, server string) (*incluster.Pod, error) {
	p := &incluster.Pod{Files: dir, Server: server, HostName: l.hostName, HostNetwork: l.workload.HostNetwork}
	if len(l.served) > 0 {
		p.CertDir, p.ServingCerts = l.certs(), incluster.DefaultCertDir()
	}
	return p, files.Write(p.Files)
}

// networks are those of the operator's processes that run, the last one started last.
type networks struct {
	mu  sync.Mutex
	all []*incluster.Network
}

func (n *networks) add(network *incluster.Network) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.all = append(n.all, network)
}

func (n *networks) remove(network *incluster.Network) {
	network.Close()
	n.mu.Lock()
	defer n.mu.Unlock()
	n.all = slices.DeleteFunc(n.all, func(other *incluster.Network) bool { return other == network })
}

// answering is how long a process that is called has to listen, such as one that has just been
// started: less than an API server waits for a webhook.
const answering = 8 * time.Second

// dial connects to a port of the process that was started last of those that listen there. A
// Service would lead to one that is ready, so one is waited for.
func (n *networks) dial(ctx context.Context, port int) (net.Conn, error) {
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
		case <-time.After(look):
		case <-ctx.Done():
			return nil, fmt.Errorf("the operator does not listen on port %d", port)
		}
	}
}

// ServeHTTP opens tunnels to the operator (HTTP CONNECT), for the API server.
func (n *networks) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_, text, err := net.SplitHostPort(r.Host)
	port, notNumber := strconv.Atoi(text)
	if r.Method != http.MethodConnect || err != nil || notNumber != nil {
		http.Error(w, "want CONNECT to HOST:PORT", http.StatusBadRequest)
		return
	}
	program, err := n.dial(r.Context(), port)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	defer program.Close()
	realnode.Tunnel(w, program)
}

// serve lets the API server of a sandbox reach the operator, until what it returns is called.
func (n *networks) serve(ctx context.Context, path string) (end func(), _ error) {
	_ = os.Remove(path)
	listener, err := socket.Listen(ctx, path)
	if err != nil {
		return nil, err
	}
	server := &http.Server{Handler: n, ReadHeaderTimeout: answering}
	go func() { _ = server.Serve(listener) }()
	return func() { _ = server.Close() }, nil
}
