// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package pki

import (
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// Endpoint is the server in a kubeconfig. Cluster, which is also the name of the context, and User are only
// names.
type Endpoint struct {
	Cluster, User string
	// URL is where the server is.
	URL string
	// Namespace is the default namespace; empty for kubectl's default.
	Namespace string
}

// Kubeconfig returns a kubeconfig with this authority and the certificate of a client.
func (a *Authority) Kubeconfig(e Endpoint, client Pair) ([]byte, error) {
	return clientcmd.Write(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{e.Cluster: {Server: e.URL, CertificateAuthorityData: a.Cert}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{e.User: {ClientCertificateData: client.Cert, ClientKeyData: client.Key}},
		Contexts:       map[string]*clientcmdapi.Context{e.Cluster: {Cluster: e.Cluster, AuthInfo: e.User, Namespace: e.Namespace}},
		CurrentContext: e.Cluster,
	})
}
