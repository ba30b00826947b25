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

// Access creates clients for a sandbox's API server and etcd. It reads the addresses and
// credentials from the sandbox's data directory.
type Access struct {
	credentials credentials
	settings    settingsFile
	// admin is the path of the administrator's kubeconfig.
	admin string
}

// NewKubeconfig returns a kubeconfig with a new client certificate for a user in the given groups.
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

// RESTConfig returns the client configuration with which the administrator connects to the API
// server.
func (a Access) RESTConfig() (*rest.Config, error) {
	if _, err := a.settings.load(); err != nil {
		return nil, err
	}
	return clientcmd.BuildConfigFromFlags("", a.admin)
}

// writeKubeconfigs writes the components' and the administrator's kubeconfigs. It writes another
// copy of the administrator's kubeconfig to adminCopy unless this path is empty.
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

// Etcd returns a client for the running sandbox's etcd.
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

// WriteKubeconfig atomically replaces a file with a kubeconfig, so that no client reads a partial
// file. Only the current user can read the new file, because it contains a private key. If the path
// is a symbolic link, the link itself is replaced.
func WriteKubeconfig(file string, data []byte) error {
	if err := writeSecret(file, data); err != nil {
		return fmt.Errorf("write the kubeconfig: %w", err)
	}
	return nil
}

// mayOverwrite returns an error if the kubeconfig file must not be overwritten, for example because
// it is not the kubeconfig of a sandbox. An empty path is permitted.
func mayOverwrite(kubeconfig string) error {
	if kubeconfig == "" {
		return nil
	}
	return MayOverwrite(kubeconfig, contextName, fmt.Errorf(
		"%s exists and is not the kubeconfig of a sandbox: give another --kubeconfig, or remove it first", kubeconfig))
}

// MayOverwrite returns nil if the kubeconfig file may be overwritten: it does not exist, is empty,
// or contains a single cluster, which has the given name. For any other content, MayOverwrite
// returns the error "refusal". It returns another error if the file cannot be read or its directory
// does not exist.
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
