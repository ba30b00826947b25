// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// Access connects to the API server and to etcd as the user of the data directory.
type Access struct {
	credentials credentials
	settings    settingsFile
	// admin is the path of the administrator's kubeconfig.
	admin string
}

// NewKubeconfig returns a kubeconfig with a new client certificate for a user.
func (a Access) NewKubeconfig(user string, groups []string) ([]byte, error) {
	s, err := a.settings.load()
	if err != nil {
		return nil, err
	}
	return a.credentials.kubeconfig(s.apiServer(), user, groups)
}

// AdminKubeconfig returns a new kubeconfig for the administrator.
func (a Access) AdminKubeconfig() ([]byte, error) {
	return a.NewKubeconfig(Admin, []string{superusers})
}

// RESTConfig returns the administrator's connection to the API server.
func (a Access) RESTConfig() (*rest.Config, error) {
	if _, err := a.settings.load(); err != nil {
		return nil, err
	}
	return clientcmd.BuildConfigFromFlags("", a.admin)
}

// writeKubeconfigs writes the kubeconfigs of the components and of the administrator, and a copy of the
// latter unless adminCopy is empty.
func (a Access) writeKubeconfigs(adminCopy string) error {
	s, err := a.settings.load()
	if err != nil {
		return err
	}
	if err := a.credentials.writeComponents(s.apiServer()); err != nil {
		return err
	}
	admin, err := a.AdminKubeconfig()
	if err != nil {
		return err
	}
	if err := WriteKubeconfig(a.admin, admin); err != nil {
		return err
	}
	if adminCopy == "" {
		return nil
	}
	return WriteKubeconfig(adminCopy, admin)
}

// Etcd returns a client for the etcd of the running sandbox.
func (a Access) Etcd(ctx context.Context) (*clientv3.Client, error) {
	s, err := a.settings.load()
	if err != nil {
		return nil, err
	}
	pair, err := tls.LoadX509KeyPair(a.credentials.certFile(etcdClientCert), a.credentials.keyFile(etcdClientCert))
	if err != nil {
		return nil, err
	}
	authority, err := os.ReadFile(a.credentials.certFile(etcdCA))
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(authority)
	return clientv3.New(clientv3.Config{
		Context:     ctx,
		Endpoints:   []string{s.etcd()},
		DialTimeout: 10 * time.Second,
		TLS:         &tls.Config{Certificates: []tls.Certificate{pair}, RootCAs: roots, MinVersion: tls.VersionTLS12},
		Logger:      zap.NewNop(),
	})
}

// WriteKubeconfig replaces a file by a kubeconfig, which contains a key. Only the user can read it, whatever
// the mode of the old file or of the target of a symbolic link. A client that waits for the file never reads
// a partial file.
func WriteKubeconfig(file string, data []byte) error {
	if err := writeSecret(file, data); err != nil {
		return fmt.Errorf("write the kubeconfig: %w", err)
	}
	return nil
}

// mayOverwrite refuses to overwrite a kubeconfig that does not belong to a sandbox.
func mayOverwrite(kubeconfig string) error {
	if kubeconfig == "" {
		return nil
	}
	return MayOverwrite(kubeconfig, contextName, fmt.Errorf(
		"%s exists and is not the kubeconfig of a sandbox: give another --kubeconfig, or remove it first", kubeconfig))
}

// MayOverwrite returns the given error if the file exists, unless it is empty or a kubeconfig whose only
// cluster has the given name.
func MayOverwrite(kubeconfig, cluster string, refusal error) error {
	data, err := os.ReadFile(kubeconfig)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if _, err := os.Stat(filepath.Dir(kubeconfig)); err != nil {
			return fmt.Errorf("the kubeconfig cannot be written: %w", err)
		}
		return nil
	case err != nil:
		return fmt.Errorf("the kubeconfig cannot be written: %w", err)
	case len(bytes.TrimSpace(data)) == 0:
		return nil
	}
	config, err := clientcmd.Load(data)
	if err != nil {
		return refusal
	}
	if _, ours := config.Clusters[cluster]; !ours || len(config.Clusters) > 1 {
		return refusal
	}
	return nil
}
