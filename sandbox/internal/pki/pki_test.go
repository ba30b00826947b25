// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package pki

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestServerAndClientTrustEachOther(t *testing.T) {
	ca := authority(t)
	server, err := ca.Server("server", []string{"localhost"}, []net.IP{net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	client, err := ca.Client("alice", "developers", "testers")
	if err != nil {
		t.Fatal(err)
	}
	state, err := handshake(t, ca, server, ca, client)
	if err != nil {
		t.Fatal(err)
	}
	subject := state.PeerCertificates[0].Subject
	slices.Sort(subject.Organization)
	if subject.CommonName != "alice" || !slices.Equal(subject.Organization, []string{"developers", "testers"}) {
		t.Errorf("the server sees %s", subject)
	}
}

func TestStrangersAreRefused(t *testing.T) {
	ca, other := authority(t), authority(t)
	server, err := ca.Server("server", nil, []net.IP{net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	stranger, err := other.Client("alice")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := handshake(t, ca, server, ca, stranger); err == nil {
		t.Error("a client of another authority was let in")
	}
	alice, err := ca.Client("alice")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := handshake(t, ca, server, other, alice); err == nil {
		t.Error("a client that trusts another authority went on")
	}
	// A client certificate must not be accepted as a serving certificate.
	if _, err := handshake(t, ca, alice, ca, alice); err == nil {
		t.Error("a server with a client certificate was trusted")
	}
}

func TestStoredAuthorityGoesOn(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "pki")
	ca := authority(t)
	if Exists(dir, "ca") {
		t.Error("it exists before it was written")
	}
	if err := ca.Write(dir, "ca"); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(filepath.Join(dir, "ca.key"))
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm() != 0o600 {
		t.Errorf("the key can be read by others: %s", info.Mode())
	}
	loaded, err := LoadAuthority(dir, "ca")
	if err != nil {
		t.Fatal(err)
	}
	client, err := loaded.Client("alice")
	if err != nil {
		t.Fatal(err)
	}
	server, err := ca.Server("server", nil, []net.IP{net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := handshake(t, ca, server, ca, client); err != nil {
		t.Error(err)
	}
}

func TestDamagedAuthorityIsAnError(t *testing.T) {
	for _, file := range []string{"ca.crt", "ca.key"} {
		dir := t.TempDir()
		if err := authority(t).Write(dir, "ca"); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, file), []byte("garbage"), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := LoadAuthority(dir, "ca"); err == nil {
			t.Errorf("damaged %s was loaded", file)
		}
	}
}

func authority(t *testing.T) *Authority {
	t.Helper()
	ca, err := NewAuthority("test")
	if err != nil {
		t.Fatal(err)
	}
	return ca
}

// handshake connects a client to a server, and returns the server's TLS connection state.
func handshake(t *testing.T, serverCA *Authority, server Pair, clientRoots *Authority, client Pair) (tls.ConnectionState, error) {
	t.Helper()
	certificate := func(p Pair) []tls.Certificate {
		c, err := tls.X509KeyPair(p.Cert, p.Key)
		if err != nil {
			t.Fatal(err)
		}
		return []tls.Certificate{c}
	}
	pool := func(a *Authority) *x509.CertPool {
		p := x509.NewCertPool()
		p.AppendCertsFromPEM(a.Cert)
		return p
	}
	l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{
		Certificates: certificate(server), ClientCAs: pool(serverCA), ClientAuth: tls.RequireAndVerifyClientCert,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	failed := make(chan error, 1)
	go func() {
		c, err := tls.Dial("tcp", l.Addr().String(), &tls.Config{Certificates: certificate(client), RootCAs: pool(clientRoots)})
		if err == nil {
			defer c.Close()
			// With TLS 1.3, a client learns only at its first read that the server has rejected its
			// certificate.
			if _, err = c.Read(make([]byte, 1)); errors.Is(err, io.EOF) {
				err = nil
			}
		}
		failed <- err
	}()
	conn, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	s := conn.(*tls.Conn)
	err = s.Handshake()
	s.Close()
	if clientErr := <-failed; err == nil {
		err = clientErr
	}
	return s.ConnectionState(), err
}
