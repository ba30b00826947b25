// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// The manager's service account, and its user name for the API server. In tests, too,
// it has only the rights that the installation grants.
const (
	ManagerNamespace = "tidekeeper-system"
	ManagerAccount   = "tidekeeper"
	ManagerUser      = "system:serviceaccount:" + ManagerNamespace + ":" + ManagerAccount
)

// tokenSeconds is the lifetime of a token: longer than any test run.
const tokenSeconds = 12 * 60 * 60

// token returns a token of a service account, as a pod would get it.
func (c *Cluster) token(namespace, account string) (string, error) {
	of := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: account, Namespace: namespace}}
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: new(int64(tokenSeconds))}}
	if err := c.SubResource("token").Create(context.Background(), of, request); err != nil {
		return "", fmt.Errorf("a token of the service account %s: %w", client.ObjectKeyFromObject(of), err)
	}
	return request.Status.Token, nil
}

// AccountKubeconfig writes a kubeconfig with a token of a service account, and
// returns its path.
func (c *Cluster) AccountKubeconfig(t testing.TB, namespace, account string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := c.accountKubeconfig(namespace, account, path); err != nil {
		t.Fatal(err)
	}
	return path
}

// UserKubeconfig writes a kubeconfig for a user of this name and returns its path. The user has only
// the rights that a test binds to the name.
func (c *Cluster) UserKubeconfig(t testing.TB, user string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), user)
	if err := os.WriteFile(path, []byte(c.Sandbox(t, "kubeconfig", "--user", user)), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func (c *Cluster) accountKubeconfig(namespace, account, path string) error {
	token, err := c.token(namespace, account)
	if err != nil {
		return err
	}
	return clientcmd.WriteToFile(clientcmdapi.Config{
		Clusters: map[string]*clientcmdapi.Cluster{"sandbox": {
			Server: c.Config.Host, CertificateAuthority: c.Config.CAFile, CertificateAuthorityData: c.Config.CAData,
		}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{account: {Token: token}},
		Contexts:       map[string]*clientcmdapi.Context{"sandbox": {Cluster: "sandbox", AuthInfo: account}},
		CurrentContext: "sandbox",
	}, path)
}

// becomeManager makes managers run with a token of their service account.
func (c *Cluster) becomeManager() error {
	return c.accountKubeconfig(ManagerNamespace, ManagerAccount, c.manager)
}

// BecomeManager makes managers that are started from now on run with a token of the
// service account that an installation created.
func (c *Cluster) BecomeManager(t testing.TB) {
	t.Helper()
	if err := c.becomeManager(); err != nil {
		t.Fatal(err)
	}
}
