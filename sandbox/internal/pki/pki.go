// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package pki issues the certificates of a sandbox. All network connections within a sandbox use
// mutual TLS.
package pki

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"

	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
)

// validity is the validity period of certificates. It is so long that no sandbox has to renew its
// certificates.
const validity = 10 * 365 * 24 * time.Hour

// Pair is a certificate with its private key, both PEM encoded.
type Pair struct {
	Cert, Key []byte
}

// Authority is a certificate authority (CA).
type Authority struct {
	Pair
	cert *x509.Certificate
	key  crypto.Signer
}

// NewAuthority creates a CA with a self-signed certificate.
func NewAuthority(name string) (*Authority, error) {
	key, err := newKey()
	if err != nil {
		return nil, err
	}
	crt, err := cert.NewSelfSignedCACert(cert.Config{CommonName: name}, key)
	if err != nil {
		return nil, fmt.Errorf("certificate authority %s: %w", name, err)
	}
	pair, err := encode(crt, key)
	if err != nil {
		return nil, err
	}
	return &Authority{Pair: pair, cert: crt, key: key}, nil
}

// Server issues a serving certificate for the given host names and IP addresses.
func (a *Authority) Server(name string, dnsNames []string, ips []net.IP) (Pair, error) {
	return a.issue(&x509.Certificate{
		Subject:     pkix.Name{CommonName: name},
		DNSNames:    dnsNames,
		IPAddresses: ips,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	})
}

// Client issues a client certificate. Kubernetes uses the certificate's common name as the user
// name and its organizations as groups.
func (a *Authority) Client(user string, groups ...string) (Pair, error) {
	return a.issue(&x509.Certificate{
		Subject:     pkix.Name{CommonName: user, Organization: groups},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
}

// Peer issues a certificate that is valid both for servers and for clients, for instance for etcd
// members.
func (a *Authority) Peer(name string, dnsNames []string, ips []net.IP) (Pair, error) {
	return a.issue(&x509.Certificate{
		Subject:     pkix.Name{CommonName: name},
		DNSNames:    dnsNames,
		IPAddresses: ips,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	})
}

func (a *Authority) issue(template *x509.Certificate) (Pair, error) {
	key, err := newKey()
	if err != nil {
		return Pair{}, err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return Pair{}, err
	}
	template.SerialNumber = serial
	template.NotBefore = a.cert.NotBefore
	template.NotAfter = time.Now().Add(validity)
	if template.NotAfter.After(a.cert.NotAfter) {
		template.NotAfter = a.cert.NotAfter
	}
	template.KeyUsage = x509.KeyUsageDigitalSignature
	template.BasicConstraintsValid = true
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, key.Public(), a.key)
	if err != nil {
		return Pair{}, fmt.Errorf("certificate of %s: %w", template.Subject.CommonName, err)
	}
	crt, err := x509.ParseCertificate(der)
	if err != nil {
		return Pair{}, err
	}
	return encode(crt, key)
}

// Write writes the certificate and the key to NAME.crt and NAME.key in the given directory.
func (p Pair) Write(dir, name string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, name+".crt"), p.Cert, 0o600); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, name+".key"), p.Key, 0o600)
}

// Exists reports whether the files that [Pair.Write] writes under the given name exist in the
// directory.
func Exists(dir, name string) bool {
	_, err := os.Stat(filepath.Join(dir, name+".key"))
	return !errors.Is(err, fs.ErrNotExist)
}

// LoadAuthority reads a CA from the files that [Pair.Write] has written.
func LoadAuthority(dir, name string) (*Authority, error) {
	certPEM, err := os.ReadFile(filepath.Join(dir, name+".crt"))
	if err != nil {
		return nil, err
	}
	keyPEM, err := os.ReadFile(filepath.Join(dir, name+".key"))
	if err != nil {
		return nil, err
	}
	certs, err := cert.ParseCertsPEM(certPEM)
	if err != nil {
		return nil, fmt.Errorf("certificate authority %s: %w", name, err)
	}
	key, err := keyutil.ParsePrivateKeyPEM(keyPEM)
	if err != nil {
		return nil, fmt.Errorf("key of certificate authority %s: %w", name, err)
	}
	signer, ok := key.(crypto.Signer)
	if !ok {
		return nil, fmt.Errorf("key of certificate authority %s cannot sign", name)
	}
	return &Authority{Pair: Pair{Cert: certPEM, Key: keyPEM}, cert: certs[0], key: signer}, nil
}

// NewSigningKey creates a key pair without a certificate for signing ServiceAccount tokens. Cert
// holds the public key.
func NewSigningKey() (Pair, error) {
	key, err := newKey()
	if err != nil {
		return Pair{}, err
	}
	der, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return Pair{}, err
	}
	keyPEM, err := keyutil.MarshalPrivateKeyToPEM(key)
	if err != nil {
		return Pair{}, err
	}
	return Pair{
		Cert: pem.EncodeToMemory(&pem.Block{Type: keyutil.PublicKeyBlockType, Bytes: der}),
		Key:  keyPEM,
	}, nil
}

func newKey() (*ecdsa.PrivateKey, error) {
	return ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
}

func encode(crt *x509.Certificate, key *ecdsa.PrivateKey) (Pair, error) {
	keyPEM, err := keyutil.MarshalPrivateKeyToPEM(key)
	if err != nil {
		return Pair{}, err
	}
	return Pair{
		Cert: pem.EncodeToMemory(&pem.Block{Type: cert.CertificateBlockType, Bytes: crt.Raw}),
		Key:  keyPEM,
	}, nil
}
