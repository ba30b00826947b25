// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package pki

import (
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// Endpoint describes a server for a kubeconfig. Cluster and User are arbitrary names; Cluster is
// also used as the name of the context.
type Endpoint struct {
	Cluster, User string
	// URL is the URL of the server.
	URL string
	// Namespace is the default namespace. If it is empty, kubectl uses the namespace "default".
	Namespace string
}

// Kubeconfig returns a kubeconfig that trusts this CA and authenticates the user with the given
// client certificate.
func (a *Authority) Kubeconfig(e Endpoint, client Pair) ([]byte, error) {
	return clientcmd.Write(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{e.Cluster: {Server: e.URL, CertificateAuthorityData: a.Cert}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{e.User: {ClientCertificateData: client.Cert, ClientKeyData: client.Key}},
		Contexts:       map[string]*clientcmdapi.Context{e.Cluster: {Cluster: e.Cluster, AuthInfo: e.User, Namespace: e.Namespace}},
		CurrentContext: e.Cluster,
	})
}
