// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	stdlog "log"
	"net"
	"net/http"
	"slices"
	"time"

	"k8s.io/client-go/rest"

	"tidekeeper.dev/tidekeeper/sandbox/internal/fault"
	"tidekeeper.dev/tidekeeper/sandbox/internal/pki"
)

// ContextName is the name of the cluster, the user and the context in the
// kubeconfigs of proxies.
const ContextName = "sandbox-proxy"

// Options are the options of a proxy.
type Options struct {
	// Upstream is the connection to the API server, for clients with the proxy's kubeconfig.
	Upstream *rest.Config
	// Namespace is the default namespace of the kubeconfig.
	Namespace string
	// Listen is the address to listen on.
	Listen string
	// Control is the path for the socket of the control API; if it is empty, only this process can change
	// rules.
	Control string
	Rules   []fault.Rule
	// Crash kills the program behind the proxy, and restarts it after the given time. If it is nil, rules
	// cannot have the fault Crash.
	Crash func(down time.Duration)
	// Log receives the log.
	Log io.Writer
}

// Server is a running proxy.
type Server struct {
	// URL is the address of the proxy.
	URL string
	// Kubeconfig is a kubeconfig for clients.
	Kubeconfig []byte

	handler        *Proxy
	proxy, control *http.Server
	listeners      []net.Listener
	failed         chan error
}

// Start starts a proxy, which serves until Close is called.
func Start(o Options) (*Server, error) {
	rules := fault.NewRuleSet()
	if err := rules.Add(o.Rules...); err != nil {
		return nil, err
	}
	handler, err := New(o.Upstream, rules, o.Log)
	if err != nil {
		return nil, err
	}
	handler.crash = o.Crash
	if err := possible(o.Rules, o.Crash != nil); err != nil {
		return nil, err
	}
	ca, err := pki.NewAuthority(ContextName + "-ca")
	if err != nil {
		return nil, err
	}
	client, err := ca.Client(ContextName)
	if err != nil {
		return nil, err
	}
	config, err := tlsConfig(ca, o.Listen)
	if err != nil {
		return nil, err
	}
	clients, err := net.Listen("tcp", o.Listen)
	if err != nil {
		return nil, fmt.Errorf("--listen: %w", err)
	}
	s := &Server{
		URL:     "https://" + clients.Addr().String(),
		handler: handler,
		proxy:   newServer(handler, config),
		control: newServer(handler.Control(), nil),
		failed:  make(chan error, 2),
	}
	if s.Kubeconfig, err = ca.Kubeconfig(pki.Endpoint{Cluster: ContextName, User: ContextName, URL: s.URL, Namespace: o.Namespace}, client); err != nil {
		return nil, errors.Join(err, clients.Close())
	}
	if o.Control != "" {
		control, err := listenControl(o.Control)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("--control: %w", err), clients.Close())
		}
		s.listeners = append(s.listeners, control)
		go func() { s.failed <- s.control.Serve(control) }()
	}
	s.listeners = append(s.listeners, clients)
	go func() { s.failed <- s.proxy.ServeTLS(clients, "", "") }()
	return s, nil
}

// Serve also serves the connections of another listener, until that is closed.
func (s *Server) Serve(clients net.Listener) { _ = s.proxy.ServeTLS(clients, "", "") }

// Warnings returns a line for each resource in the rules that the API server does not serve.
func (s *Server) Warnings(rules []fault.Rule) []string { return s.handler.catalog.warnings(rules) }

// Rules returns the active rules, which the caller may change.
func (s *Server) Rules() *fault.RuleSet { return s.handler.rules }

// Watched returns the sorted resources that clients watch now.
func (s *Server) Watched() []string {
	var resources []string
	for _, open := range s.handler.streams.matching(fault.Match{}) {
		resources = append(resources, resource(open.exchange.request))
	}
	slices.Sort(resources)
	return slices.Compact(resources)
}

// Open returns the number of open watches that match.
func (s *Server) Open(m fault.Match) int { return len(s.handler.streams.matching(m)) }

// Cut closes the matching watches.
func (s *Server) Cut(m fault.Match) {
	for _, open := range s.handler.streams.matching(m) {
		open.cut("")
	}
}

// Run waits until the context ends, or until the proxy fails.
func (s *Server) Run(ctx context.Context) error {
	defer s.Close()
	select {
	case err := <-s.failed:
		return err
	case <-ctx.Done():
		return nil
	}
}

// Close stops the proxy immediately, and closes all connections.
func (s *Server) Close() error {
	err := errors.Join(s.proxy.Close(), s.control.Close())
	for _, listener := range s.listeners {
		// A server that has not begun to serve does not close its listener.
		_ = listener.Close()
	}
	return err
}

func newServer(handler http.Handler, config *tls.Config) *http.Server {
	return &http.Server{
		Handler: handler, TLSConfig: config, ReadHeaderTimeout: 30 * time.Second,
		// Do not log connections that clients close.
		ErrorLog: stdlog.New(io.Discard, "", 0),
	}
}

// tlsConfig returns a configuration with which clients may, but need not, have a certificate.
func tlsConfig(ca *pki.Authority, listen string) (*tls.Config, error) {
	host, _, err := net.SplitHostPort(listen)
	if err != nil {
		return nil, fmt.Errorf("--listen: %w", err)
	}
	names, addresses := []string{"localhost"}, []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback}
	if ip := net.ParseIP(host); ip != nil {
		addresses = append(addresses, ip)
	} else {
		names = append(names, host)
	}
	pair, err := ca.Server(ContextName, names, addresses)
	if err != nil {
		return nil, err
	}
	certificate, err := tls.X509KeyPair(pair.Cert, pair.Key)
	if err != nil {
		return nil, err
	}
	clients := x509.NewCertPool()
	clients.AppendCertsFromPEM(ca.Cert)
	return &tls.Config{
		Certificates: []tls.Certificate{certificate},
		ClientCAs:    clients,
		ClientAuth:   tls.VerifyClientCertIfGiven,
		MinVersion:   tls.VersionTLS12,
	}, nil
}
