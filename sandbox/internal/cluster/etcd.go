// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"tidekeeper.dev/tidekeeper/sandbox/internal/ports"
)

// Etcd returns a client of the etcd of a running sandbox.
func (d Dir) Etcd(ctx context.Context) (*clientv3.Client, error) {
	s, err := d.loadSettings()
	if err != nil {
		return nil, err
	}
	pair, err := tls.LoadX509KeyPair(d.certFile(etcdClientCert), d.keyFile(etcdClientCert))
	if err != nil {
		return nil, err
	}
	authority, err := os.ReadFile(d.certFile(etcdCA))
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(authority)
	return clientv3.New(clientv3.Config{
		Context:     ctx,
		Endpoints:   []string{fmt.Sprintf("https://%s:%d", ports.Loopback, s.EtcdPort)},
		DialTimeout: 10 * time.Second,
		TLS:         &tls.Config{Certificates: []tls.Certificate{pair}, RootCAs: roots, MinVersion: tls.VersionTLS12},
		Logger:      zap.NewNop(),
	})
}

// remembering are the components that remember objects by their UID, for instance that one is
// gone for good. They must not be there while a snapshot is put back.
var remembering = Components[2:]

// Without lets a function work while the components that act on objects by themselves do not
// run, and starts them again, whatever it returns.
func (d Dir) Without(ctx context.Context, do func() error) (err error) {
	status, err := d.Status(ctx)
	if err != nil {
		return err
	}
	if status.RealNodes > 0 {
		return errors.New("this sandbox has real nodes, whose containers cannot be put back: restore in one without --real-nodes")
	}
	if down := status.Down(); len(down) > 0 {
		return fmt.Errorf("%s: start or resume it first, with 'sandbox component'", strings.Join(down, ", "))
	}
	var killed []string
	defer func() {
		// Also if this was interrupted.
		ctx := context.WithoutCancel(ctx)
		for _, name := range killed {
			if failed := d.Act(ctx, name, "start"); failed != nil {
				err = errors.Join(err, fmt.Errorf("start %s again: %w", name, failed))
			}
		}
	}()
	for _, name := range remembering {
		if err := d.Act(ctx, name, "kill"); err != nil {
			return err
		}
		killed = append(killed, name)
	}
	return do()
}
