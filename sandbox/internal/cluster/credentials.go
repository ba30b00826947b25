// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"

	"tidekeeper.dev/tidekeeper/sandbox/internal/component"
	"tidekeeper.dev/tidekeeper/sandbox/internal/pki"
	"tidekeeper.dev/tidekeeper/sandbox/internal/ports"
	"tidekeeper.dev/tidekeeper/sandbox/internal/realnode"
)

// contextName is the name of the cluster, the user and the context in a sandbox's kubeconfigs. A
// sandbox may overwrite a kubeconfig whose only cluster has this name.
const contextName = "tidekeeper-sandbox"

// Admin is the user name of the administrator, who has all permissions.
const Admin = "sandbox-admin"

// superusers is the group whose members bypass RBAC.
const superusers = "system:masters"

// Names of the files with certificates and keys, without extension.
const (
	// clusterCA signs the certificates of the API server and its clients.
	clusterCA = "ca"
	// etcdCA signs the certificates of etcd and its clients. It is a separate CA, because otherwise
	// every user of the API server could access etcd.
	etcdCA            = "etcd-ca"
	apiServerCert     = "kube-apiserver"
	etcdCert          = "etcd"
	etcdClientCert    = "etcd-client"
	serviceAccountKey = "service-accounts"
	// frontProxyCA signs the certificate with which the API server identifies itself to aggregated
	// API servers.
	frontProxyCA   = "front-proxy-ca"
	frontProxyCert = "front-proxy-client"
	// kubeletClientCert is the certificate with which the API server identifies itself to real
	// kubelets.
	kubeletClientCert = "kube-apiserver-kubelet"
)

// serviceIP is the cluster IP of the API server's Service.
const serviceIP = "10.96.0.1"

// dnsIP is the cluster IP of the DNS server for pods on real nodes.
const dnsIP = "10.96.0.10"

// credentials issues and stores the certificates, keys and kubeconfigs of a sandbox.
type credentials struct {
	// pki is the directory of certificates and keys; kubeconfigs is the directory of the
	// components' kubeconfigs.
	pki, kubeconfigs string
}

func (c credentials) certFile(name string) string { return filepath.Join(c.pki, name+".crt") }
func (c credentials) keyFile(name string) string  { return filepath.Join(c.pki, name+".key") }

// kubeconfigOf returns the path of the kubeconfig for a component's user.
func (c credentials) kubeconfigOf(user string) string { return filepath.Join(c.kubeconfigs, user) }

// issue issues the certificates and keys that are missing in the directory: all of them in a new
// directory, or only some if an earlier version of the sandbox created the directory.
func (c credentials) issue() error {
	cluster, newCluster, err := authority(c.pki, clusterCA)
	if err != nil {
		return err
	}
	etcd, newEtcd, err := authority(c.pki, etcdCA)
	if err != nil {
		return err
	}
	frontProxy, newFrontProxy, err := authority(c.pki, frontProxyCA)
	if err != nil {
		return err
	}
	loopback := []net.IP{net.ParseIP(ports.Loopback)}
	for name, issue := range map[string]func() (pki.Pair, error){
		apiServerCert: func() (pki.Pair, error) {
			return cluster.Server(component.APIServer,
				[]string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local"},
				append(loopback, net.ParseIP(serviceIP)))
		},
		etcdCert:          func() (pki.Pair, error) { return etcd.Peer(component.Etcd, []string{"localhost"}, loopback) },
		etcdClientCert:    func() (pki.Pair, error) { return etcd.Client(component.APIServer) },
		frontProxyCert:    func() (pki.Pair, error) { return frontProxy.Client(frontProxyCert) },
		serviceAccountKey: pki.NewSigningKey,
		kubeletClientCert: func() (pki.Pair, error) { return cluster.Client("kube-apiserver-kubelet-client", superusers) },
	} {
		// Keep existing certificates, unless there is a new CA, which has not signed them.
		if pki.Exists(c.pki, name) && !newCluster && !newEtcd && !newFrontProxy {
			continue
		}
		pair, err := issue()
		if err != nil {
			return err
		}
		if err := pair.Write(c.pki, name); err != nil {
			return err
		}
	}
	return nil
}

// authority returns the CA that is stored in a directory under the given name. If there is none,
// authority creates and stores the CA, and reports that it is new.
func authority(dir, name string) (_ *pki.Authority, isNew bool, _ error) {
	if pki.Exists(dir, name) {
		loaded, err := pki.LoadAuthority(dir, name)
		return loaded, false, err
	}
	made, err := pki.NewAuthority("tidekeeper-sandbox-" + name)
	if err != nil {
		return nil, false, err
	}
	return made, true, made.Write(dir, name)
}

// kubeconfig returns a kubeconfig with a new client certificate for the user, and with the API
// server at the given URL.
func (c credentials) kubeconfig(server, user string, groups []string) ([]byte, error) {
	ca, err := pki.LoadAuthority(c.pki, clusterCA)
	if err != nil {
		return nil, err
	}
	pair, err := ca.Client(user, groups...)
	if err != nil {
		return nil, err
	}
	return ca.Kubeconfig(pki.Endpoint{Cluster: contextName, User: user, URL: server}, pair)
}

// users holds the groups of the components' users, keyed by user name.
var users = map[string][]string{
	"system:" + component.ControllerManager: nil,
	"system:" + component.Scheduler:         nil,
	// The kubelets need all permissions: a single process simulates all nodes, and the node
	// authorizer would restrict it to the objects of a single node.
	"sandbox:" + component.Kubelets: {superusers},
}

// writeComponents writes the components' kubeconfigs, with the API server at the given URL.
func (c credentials) writeComponents(server string) error {
	if err := os.MkdirAll(c.kubeconfigs, 0o700); err != nil {
		return err
	}
	for user, groups := range users {
		data, err := c.kubeconfig(server, user, groups)
		if err != nil {
			return err
		}
		if err := WriteKubeconfig(c.kubeconfigOf(user), data); err != nil {
			return err
		}
	}
	return nil
}

// writeNode writes the credentials for a real node's kubelet.
func (c credentials) writeNode(spec realnode.Spec) error {
	ca, err := pki.LoadAuthority(c.pki, clusterCA)
	if err != nil {
		return err
	}
	user := "system:node:" + spec.Name
	serving, err := ca.Server(user, []string{spec.Name}, []net.IP{realnode.NetworkOf(spec.Number).Node.AsSlice()})
	if err != nil {
		return err
	}
	// A real node is in its own network, in which it reaches the API server only at the cluster IP
	// of the API server's Service.
	kubeconfig, err := c.kubeconfig(fmt.Sprintf("https://%s:443", spec.Service), user, []string{"system:nodes"})
	if err != nil {
		return err
	}
	for name, data := range map[string][]byte{
		realnode.Kubeconfig: kubeconfig, realnode.Authority: ca.Cert, realnode.ServingCert: serving.Cert, realnode.ServingKey: serving.Key,
	} {
		if err := writeSecret(filepath.Join(spec.Dir, name), data); err != nil {
			return err
		}
	}
	return nil
}

// writeSecret atomically replaces a file with a new file of mode 0600.
func writeSecret(file string, data []byte) error {
	temporary, err := os.CreateTemp(filepath.Dir(file), "."+filepath.Base(file)+".*")
	if err != nil {
		return err
	}
	_, err = temporary.Write(data)
	if err = errors.Join(err, temporary.Close()); err == nil {
		err = os.Rename(temporary.Name(), file)
	}
	if err != nil {
		_ = os.Remove(temporary.Name())
	}
	return err
}
