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
	// Upstream reaches the API server, as the user that clients with the
	// proxy's kubeconfig become.
	Upstream *rest.Config
	// Namespace is the default namespace of the kubeconfig.
	Namespace string
	// Listen is the address of the proxy.
	Listen string
	// Control is the path of the socket of the proxy's own API, which is made. Empty: rules are
	// only changed by this process.
	Control string
	Rules   []fault.Rule
	// Crash kills the program that the proxy is for, and starts it again after some time.
	// Without it there can be no rule with the fault Crash.
	Crash func(down time.Duration)
	// Log is where the log goes.
	Log io.Writer
}

// Server is a running proxy.
type Server struct {
	// URL is the address of the proxy.
	URL string
	// Kubeconfig is the kubeconfig of its clients.
	Kubeconfig []byte

	handler        *Proxy
	proxy, control *http.Server
	listeners      []net.Listener
	failed         chan error
}

// Start starts a proxy. It serves when this returns, until Close is called.
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

// Serve serves the connections of another listener as well, until that is closed.
func (s *Server) Serve(clients net.Listener) { _ = s.proxy.ServeTLS(clients, "", "") }

// Warnings returns warnings about rules, a line each: they name resources that the API server does
// not have.
func (s *Server) Warnings(rules []fault.Rule) []string { return s.handler.catalog.warnings(rules) }

// Rules are the rules in force, which may be changed.
func (s *Server) Rules() *fault.RuleSet { return s.handler.rules }

// Watched returns the resources that clients watch now, sorted.
func (s *Server) Watched() []string {
	var resources []string
	for _, open := range s.handler.streams.matching(fault.Match{}) {
		resources = append(resources, resource(open.exchange.request))
	}
	slices.Sort(resources)
	return slices.Compact(resources)
}

// Open returns how many open watches match.
func (s *Server) Open(m fault.Match) int { return len(s.handler.streams.matching(m)) }

// Cut breaks the matching watches off.
func (s *Server) Cut(m fault.Match) {
	for _, open := range s.handler.streams.matching(m) {
		open.cut("")
	}
}

// Run returns when the context ends, or with the error that stopped the proxy.
func (s *Server) Run(ctx context.Context) error {
	defer s.Close()
	select {
	case err := <-s.failed:
		return err
	case <-ctx.Done():
		return nil
	}
}

// Close ends the proxy at once; all connections break.
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
		// It would log each connection that a client closes.
		ErrorLog: stdlog.New(io.Discard, "", 0),
	}
}

// tlsConfig asks clients for a certificate, and accepts clients without a certificate.
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
