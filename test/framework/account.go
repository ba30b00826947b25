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

// ManagerNamespace, ManagerAccount and ManagerUser identify the manager's service account. Managers
// in tests have only the rights that an installation grants to it.
const (
	ManagerNamespace = "tidekeeper-system"
	ManagerAccount   = "tidekeeper"
	ManagerUser      = "system:serviceaccount:" + ManagerNamespace + ":" + ManagerAccount
)

// tokenSeconds is the lifetime of tokens in seconds, longer than any test run.
const tokenSeconds = 12 * 60 * 60

// token requests a token for a service account, like the token that is mounted into the account's
// pods.
func (c *Cluster) token(namespace, account string) (string, error) {
	of := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: account, Namespace: namespace}}
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: new(int64(tokenSeconds))}}
	if err := c.SubResource("token").Create(context.Background(), of, request); err != nil {
		return "", fmt.Errorf("a token of the service account %s: %w", client.ObjectKeyFromObject(of), err)
	}
	return request.Status.Token, nil
}

// AccountKubeconfig writes a kubeconfig with a service account's token, and returns its path.
func (c *Cluster) AccountKubeconfig(t testing.TB, namespace, account string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := c.accountKubeconfig(namespace, account, path); err != nil {
		t.Fatal(err)
	}
	return path
}

// UserKubeconfig writes a kubeconfig for the given user name and returns its path. The user has
// only the rights that a test binds to this name.
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

// becomeManager sets c.manager to a kubeconfig with a token for the manager's service account, and
// waits until the account's rights are in force.
func (c *Cluster) becomeManager() error {
	if err := c.accountKubeconfig(ManagerNamespace, ManagerAccount, c.manager); err != nil {
		return err
	}
	return c.awaitManagerRights()
}

// BecomeManager makes all managers started after the call run with a token for the service account
// that an installation created. It waits until the account's rights are in force.
func (c *Cluster) BecomeManager(t testing.TB) {
	t.Helper()
	if err := c.becomeManager(); err != nil {
		t.Fatal(err)
	}
}
