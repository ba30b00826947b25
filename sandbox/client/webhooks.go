// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// Webhooks holds the address at which a sandbox's API server calls the webhooks of this process,
// and the serving certificate that the API server trusts. The fields match webhook.Options of
// controller-runtime.
type Webhooks struct {
	// Host and Port are the listen address. The port stays reserved until the sandbox stops.
	Host string
	Port int
	// CertDir is the directory with the server's certificate and key, tls.crt and tls.key.
	CertDir string
	// CA is the PEM-encoded certificate of the CA that issued the server's certificate.
	CA []byte

	release func() error
}

// newWebhooks reserves a port and writes a certificate and its key to the given directory.
func newWebhooks(dir string) (*Webhooks, error) {
	address, release, err := FreeAddress()
	if err != nil {
		return nil, err
	}
	w := &Webhooks{CertDir: dir, release: release}
	host, port, err := net.SplitHostPort(address)
	if err == nil {
		w.Host = host
		w.Port, err = strconv.Atoi(port)
	}
	if err == nil {
		err = w.writeCertificate()
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("a server for webhooks: %w", err), release())
	}
	return w, nil
}

// writeCertificate creates a CA and a serving certificate, both of which are valid for a year. It
// writes the certificate and its key to CertDir.
func (w *Webhooks) writeCertificate() error {
	ca := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "webhooks of a test"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().AddDate(1, 0, 0),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	server := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: w.Host},
		NotBefore: ca.NotBefore, NotAfter: ca.NotAfter,
		IPAddresses: []net.IP{net.ParseIP(w.Host)}, DNSNames: []string{"localhost"},
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	caKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	serverKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	caCertificate, err := x509.CreateCertificate(rand.Reader, ca, ca, caKey.Public(), caKey)
	if err != nil {
		return err
	}
	certificate, err := x509.CreateCertificate(rand.Reader, server, ca, serverKey.Public(), caKey)
	if err != nil {
		return err
	}
	key, err := x509.MarshalPKCS8PrivateKey(serverKey)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(w.CertDir, 0o700); err != nil {
		return err
	}
	w.CA = encode("CERTIFICATE", caCertificate)
	return errors.Join(
		os.WriteFile(filepath.Join(w.CertDir, "tls.crt"), encode("CERTIFICATE", certificate), 0o600),
		os.WriteFile(filepath.Join(w.CertDir, "tls.key"), encode("PRIVATE KEY", key), 0o600))
}

func encode(kind string, data []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: data})
}

// redirect redirects an object's webhooks that refer to a Service to the URL of this server.
func (w *Webhooks) redirect(o object) {
	switch o.kind() {
	case "ValidatingWebhookConfiguration", "MutatingWebhookConfiguration":
		for _, hook := range at[[]any](o, "webhooks") {
			fields, _ := hook.(map[string]any)
			w.redirectClient(at[map[string]any](fields, "clientConfig"), "/")
		}
	case "CustomResourceDefinition":
		w.redirectClient(at[map[string]any](o, "spec", "conversion", "webhook", "clientConfig"), "/convert")
	}
}

// redirectClient replaces the Service reference in a clientConfig with the URL of this server, and
// keeps the path.
func (w *Webhooks) redirectClient(config map[string]any, path string) {
	service := at[map[string]any](config, "service")
	if service == nil {
		return
	}
	if given := at[string](service, "path"); given != "" {
		path = given
	}
	delete(config, "service")
	config["url"] = "https://" + net.JoinHostPort(w.Host, strconv.Itoa(w.Port)) + path
	config["caBundle"] = base64.StdEncoding.EncodeToString(w.CA)
}
