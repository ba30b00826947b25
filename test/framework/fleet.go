// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"net"
	"path/filepath"
	"testing"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// FleetKubeconfig writes a kubeconfig with four contexts, and returns its path. The contexts "here"
// and "again" refer to this cluster with two different namespaces. "closed" refers to a port
// without a listener. "silent" refers to a server that accepts connections and never responds.
func (c *Cluster) FleetKubeconfig(t testing.TB, here, again string) string {
	t.Helper()
	config, err := clientcmd.LoadFromFile(c.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = silent.Close() })
	known := config.Contexts[config.CurrentContext]
	// The port for the context "closed" is reserved, so that no other process listens on it
	// meanwhile.
	for name, address := range map[string]string{"silent": silent.Addr().String(), "closed": FreeAddress(t)} {
		config.Clusters[name] = &clientcmdapi.Cluster{Server: "http://" + address}
		config.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: known.AuthInfo}
	}
	for name, namespace := range map[string]string{"here": here, "again": again} {
		config.Contexts[name] = &clientcmdapi.Context{Cluster: known.Cluster, AuthInfo: known.AuthInfo, Namespace: namespace}
	}
	config.CurrentContext = "here"
	path := filepath.Join(t.TempDir(), "config")
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		t.Fatal(err)
	}
	return path
}
