// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"tidekeeper.dev/tidekeeper/sandbox/internal/component"
	"tidekeeper.dev/tidekeeper/sandbox/internal/pki"
	"tidekeeper.dev/tidekeeper/sandbox/internal/ports"
)

// contextName is the name of the cluster, the user and the context in the
// kubeconfigs of sandboxes. A file that has it may be overwritten by one.
const contextName = "tidekeeper-sandbox"

// Admin is the user that may do everything.
const Admin = "sandbox-admin"

// superusers is the group that RBAC is not asked about.
const superusers = "system:masters"

// Names of the certificates and keys.
const (
	// clusterCA signs who talks to the API server, and the API server.
	clusterCA = "ca"
	// etcdCA signs who talks to etcd, and etcd. It is an authority of its own,
	// or each user of the API server would be let into etcd.
	etcdCA            = "etcd-ca"
	apiServerCert     = "kube-apiserver"
	etcdCert          = "etcd"
	etcdClientCert    = "etcd-client"
	serviceAccountKey = "service-accounts"
	// frontProxyCA signs what the API server shows the servers that it aggregates.
	frontProxyCA   = "front-proxy-ca"
	frontProxyCert = "front-proxy-client"
	// kubeletClientCert is what the API server shows real kubelets.
	kubeletClientCert = "kube-apiserver-kubelet"
)

// serviceIP is what the API server is called inside of the cluster.
const serviceIP = "10.96.0.1"

// dnsIP is where pods on real nodes ask for names: an address of the range of services.
const dnsIP = "10.96.0.10"

// makePKI issues what is missing of the certificates and keys: all of them in a
// new directory, and in one of an earlier release those that it did not have.
func (d Dir) makePKI() error {
	dir := d.pki()
	ca, newCA, err := authority(dir, clusterCA)
	if err != nil {
		return err
	}
	etcd, newEtcd, err := authority(dir, etcdCA)
	if err != nil {
		return err
	}
	frontProxy, newFrontProxy, err := authority(dir, frontProxyCA)
	if err != nil {
		return err
	}
	loopback := []net.IP{net.ParseIP(ports.Loopback)}
	for name, issue := range map[string]func() (pki.Pair, error){
		apiServerCert: func() (pki.Pair, error) {
			return ca.Server(component.APIServer,
				[]string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local"},
				append(loopback, net.ParseIP(serviceIP)))
		},
		etcdCert:          func() (pki.Pair, error) { return etcd.Peer(component.Etcd, []string{"localhost"}, loopback) },
		etcdClientCert:    func() (pki.Pair, error) { return etcd.Client(component.APIServer) },
		frontProxyCert:    func() (pki.Pair, error) { return frontProxy.Client(frontProxyCert) },
		serviceAccountKey: pki.NewSigningKey,
		kubeletClientCert: func() (pki.Pair, error) { return ca.Client("kube-apiserver-kubelet-client", superusers) },
	} {
		// What an authority has issued that is not there any more is of no use.
		if pki.Exists(dir, name) && !newCA && !newEtcd && !newFrontProxy {
			continue
		}
		pair, err := issue()
		if err != nil {
			return err
		}
		if err := pair.Write(dir, name); err != nil {
			return err
		}
	}
	return nil
}

// authority returns the authority of that name, and whether it had to be made.
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

func (d Dir) certFile(name string) string { return filepath.Join(d.pki(), name+".crt") }
func (d Dir) keyFile(name string) string  { return filepath.Join(d.pki(), name+".key") }

// NewKubeconfig makes a kubeconfig with a new client certificate of a user.
func (d Dir) NewKubeconfig(user string, groups []string) ([]byte, error) {
	s, err := d.loadSettings()
	if err != nil {
		return nil, err
	}
	return d.kubeconfigFor(s.apiServer(), user, groups)
}

// kubeconfigFor makes a kubeconfig with another URL of the API server.
func (d Dir) kubeconfigFor(server, user string, groups []string) ([]byte, error) {
	ca, err := pki.LoadAuthority(d.pki(), clusterCA)
	if err != nil {
		return nil, err
	}
	pair, err := ca.Client(user, groups...)
	if err != nil {
		return nil, err
	}
	return ca.Kubeconfig(pki.Endpoint{Cluster: contextName, User: user, URL: server}, pair)
}

func (s settings) apiServer() string { return "https://" + s.hostPort() }

func (s settings) hostPort() string {
	return fmt.Sprintf("%s:%d", ports.Loopback, s.APIServerPort)
}

// AdminKubeconfig makes the kubeconfig of the administrator.
func (d Dir) AdminKubeconfig() ([]byte, error) {
	return d.NewKubeconfig(Admin, []string{superusers})
}

// RESTConfig is how the administrator reaches the API server.
func (d Dir) RESTConfig() (*rest.Config, error) {
	if _, err := d.loadSettings(); err != nil {
		return nil, err
	}
	return clientcmd.BuildConfigFromFlags("", d.Kubeconfig())
}

// users of the API server that are components.
var users = map[string][]string{
	"system:" + component.ControllerManager: nil,
	"system:" + component.Scheduler:         nil,
	// One process is all nodes, so the node authorizer, which lets each node do
	// only what concerns itself, is of no use here.
	"sandbox:" + component.Kubelets: {superusers},
}

func (d Dir) kubeconfigOf(user string) string { return d.path("kubeconfigs", user) }

// writeKubeconfigs writes those of the components and of the administrator.
func (d Dir) writeKubeconfigs(adminCopy string) error {
	if err := os.MkdirAll(d.path("kubeconfigs"), 0o700); err != nil {
		return err
	}
	for user, groups := range users {
		data, err := d.NewKubeconfig(user, groups)
		if err != nil {
			return err
		}
		if err := WriteKubeconfig(d.kubeconfigOf(user), data); err != nil {
			return err
		}
	}
	admin, err := d.AdminKubeconfig()
	if err != nil {
		return err
	}
	if err := WriteKubeconfig(d.Kubeconfig(), admin); err != nil {
		return err
	}
	if adminCopy == "" {
		return nil
	}
	return WriteKubeconfig(adminCopy, admin)
}

// WriteKubeconfig replaces a file with one that has a key in it. Only the user can
// read it, whatever the mode of the old file or of the target of a symbolic link was,
// and a client that waits for the file never finds a part of it.
func WriteKubeconfig(file string, data []byte) error {
	err := writeSecret(file, data)
	if err != nil {
		return fmt.Errorf("write the kubeconfig: %w", err)
	}
	return nil
}

func writeSecret(file string, data []byte) error {
	// It is made with mode 0600.
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

// mayOverwrite refuses to overwrite a kubeconfig that is not a sandbox's.
func mayOverwrite(kubeconfig string) error {
	if kubeconfig == "" {
		return nil
	}
	return MayOverwrite(kubeconfig, contextName, fmt.Errorf(
		"%s exists and is not the kubeconfig of a sandbox: give another --kubeconfig, or remove it first", kubeconfig))
}

// MayOverwrite returns the refusal if there is a file of that name that is not
// a kubeconfig of the one cluster of that name.
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
