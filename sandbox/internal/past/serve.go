// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package past

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"log"
	"net"
	"net/http"
	"time"

	"k8s.io/client-go/rest"

	"tidekeeper.dev/tidekeeper/sandbox/internal/pki"
	"tidekeeper.dev/tidekeeper/sandbox/internal/ports"
)

// name is the name of the cluster, the user and the context in the kubeconfig that Serve returns.
const name = "sandbox-past"

// Serve serves [Handler] on a free loopback port until the returned server is closed. Only clients
// with the returned kubeconfig can connect.
func Serve(config *rest.Config, revision int64) (kubeconfig []byte, server io.Closer, _ error) {
	handler, err := Handler(config, revision)
	if err != nil {
		return nil, nil, err
	}
	ca, err := pki.NewAuthority(name + "-ca")
	if err != nil {
		return nil, nil, err
	}
	client, err := ca.Client(name)
	if err != nil {
		return nil, nil, err
	}
	pair, err := ca.Server(name, nil, []net.IP{net.ParseIP(ports.Loopback)})
	if err != nil {
		return nil, nil, err
	}
	certificate, err := tls.X509KeyPair(pair.Cert, pair.Key)
	if err != nil {
		return nil, nil, err
	}
	clients := x509.NewCertPool()
	clients.AppendCertsFromPEM(ca.Cert)
	listener, err := net.Listen("tcp", net.JoinHostPort(ports.Loopback, "0"))
	if err != nil {
		return nil, nil, err
	}
	s := &http.Server{
		Handler: handler, ReadHeaderTimeout: 30 * time.Second,
		TLSConfig: &tls.Config{
			Certificates: []tls.Certificate{certificate},
			// Require a client certificate, because other local users can connect to the port.
			ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: clients,
			MinVersion: tls.VersionTLS12,
		},
		// Discard the server's log, which would report connections that clients have closed.
		ErrorLog: log.New(io.Discard, "", 0),
	}
	go func() { _ = s.ServeTLS(listener, "", "") }()
	kubeconfig, err = ca.Kubeconfig(pki.Endpoint{Cluster: name, User: name, URL: "https://" + listener.Addr().String()}, client)
	return kubeconfig, s, err
}
