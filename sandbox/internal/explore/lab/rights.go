// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/observe"
	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/workload"
	"tidekeeper.dev/tidekeeper/sandbox/internal/incluster"
)

// defaultAccount is the ServiceAccount of pods that specify none. Manifests do not grant operator
// rights to this account.
const defaultAccount = "default"

// tokenSeconds is the lifetime of a ServiceAccount token in seconds. It exceeds the duration of any
// run.
const tokenSeconds = int64(4 * 60 * 60)

// accountFor returns the operator's ServiceAccount as NAMESPACE/NAME: the account named in the
// workload, or else the only account that installed Deployments and StatefulSets use. It is empty
// for an operator with all rights. `from` is the Deployment or StatefulSet that uses the account,
// as KIND/NAMESPACE/NAME, or empty. `why` explains the choice to users in a line.
func accountFor(ctx context.Context, config *rest.Config, named string) (account, from, why string, err error) {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return "", "", "", err
	}
	if named == workload.Administrator {
		return "", "", "The operator has the rights of an administrator.", nil
	}
	accounts, err := accountsOfPods(ctx, client)
	if err != nil {
		return "", "", "", err
	}
	if named != "" {
		namespace, name, _ := strings.Cut(named, "/")
		_, err := client.CoreV1().ServiceAccounts(namespace).Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return "", "", "", fmt.Errorf("there is no ServiceAccount %s: it, and what gives it its rights, must be among what is installed", named)
		}
		return named, accounts[named], fmt.Sprintf("The operator has the rights of the ServiceAccount %s.", named), err
	}
	switch len(accounts) {
	case 0:
		return "", "", "The operator has the rights of an administrator: nothing that is installed has a ServiceAccount for it.", nil
	case 1:
		for account, of := range accounts {
			return account, of, fmt.Sprintf("The operator has the rights of the ServiceAccount %s, as %s has.", account, of), nil
		}
	}
	return "", "", fmt.Sprintf("The operator has the rights of an administrator, as there are several ServiceAccounts: %s. --service-account chooses one.",
		strings.Join(slices.Sorted(maps.Keys(accounts)), ", ")), nil
}

// accountsOfPods maps each ServiceAccount that a Deployment or StatefulSet uses, except for default
// accounts, to that Deployment or StatefulSet, as KIND/NAMESPACE/NAME.
func accountsOfPods(ctx context.Context, client kubernetes.Interface) (map[string]string, error) {
	accounts := map[string]string{}
	add := func(kind, namespace, name, account string) {
		if account != "" && account != defaultAccount {
			accounts[namespace+"/"+account] = kind + "/" + namespace + "/" + name
		}
	}
	deployments, err := client.AppsV1().Deployments(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	for i := range deployments.Items {
		d := &deployments.Items[i]
		add("deployment", d.Namespace, d.Name, d.Spec.Template.Spec.ServiceAccountName)
	}
	sets, err := client.AppsV1().StatefulSets(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	for i := range sets.Items {
		s := &sets.Items[i]
		add("statefulset", s.Namespace, s.Name, s.Spec.Template.Spec.ServiceAccountName)
	}
	return accounts, nil
}

// administrators is the name of a ServiceAccount in kube-system with all rights. An operator with
// all rights uses this account if it connects with the credentials of its Pod.
const administrators = "sandbox-administrator"

// makeAdministrator creates the ServiceAccount named administrators and binds it to cluster-admin.
func makeAdministrator(ctx context.Context, config *rest.Config) error {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	meta := metav1.ObjectMeta{Name: administrators}
	if _, err := client.CoreV1().ServiceAccounts(metav1.NamespaceSystem).Create(ctx, &corev1.ServiceAccount{ObjectMeta: meta}, metav1.CreateOptions{}); err != nil {
		return err
	}
	_, err = client.RbacV1().ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: meta,
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: metav1.NamespaceSystem, Name: administrators}},
	}, metav1.CreateOptions{})
	return err
}

// access returns the operator's credentials for the API server behind the proxy. The first result
// is the proxy's kubeconfig, with a token if the operator has a ServiceAccount. The second contains
// the credential files of a pod that uses this account.
func access(ctx context.Context, config *rest.Config, proxied []byte, account string) ([]byte, incluster.Files, error) {
	c, err := clientcmd.Load(proxied)
	if err != nil {
		return nil, incluster.Files{}, err
	}
	files := incluster.Files{Namespace: metav1.NamespaceDefault}
	for _, cluster := range c.Clusters {
		files.CA = cluster.CertificateAuthorityData
	}
	if account == "" {
		files.Token, err = tokenOf(ctx, config, metav1.NamespaceSystem, administrators)
		return proxied, files, err
	}
	namespace, name, _ := strings.Cut(account, "/")
	if files.Token, err = tokenOf(ctx, config, namespace, name); err != nil {
		return nil, files, err
	}
	files.Namespace = namespace
	for user := range c.AuthInfos {
		c.AuthInfos[user] = &clientcmdapi.AuthInfo{Token: string(files.Token)}
	}
	for _, context := range c.Contexts {
		context.Namespace = namespace
	}
	kubeconfig, err := clientcmd.Write(*c)
	return kubeconfig, files, err
}

func tokenOf(ctx context.Context, config *rest.Config, namespace, name string) ([]byte, error) {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	granted, err := client.CoreV1().ServiceAccounts(namespace).CreateToken(ctx, name, &authenticationv1.TokenRequest{
		Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: new(tokenSeconds)},
	}, metav1.CreateOptions{})
	if err != nil {
		return nil, fmt.Errorf("get a token of the ServiceAccount %s/%s: %w", namespace, name, err)
	}
	return []byte(granted.Status.Token), nil
}

// forbidden returns a line for each distinct request denied by RBAC.
func forbidden(requests []observe.Request) []string {
	asked := map[string]bool{}
	for i := range requests {
		r := &requests[i]
		if r.Upstream != http.StatusForbidden || r.ToApplication() {
			continue
		}
		text := r.Verb + " " + cmp.Or(r.Resource, r.Path)
		if r.Namespace != "" {
			text += " in " + r.Namespace
		}
		asked[text] = true
	}
	return slices.Sorted(maps.Keys(asked))
}

// MayNot describes the requests denied by RBAC, and how to allow them. It is empty if no request
// was denied.
func MayNot(requests []observe.Request) string {
	asked := forbidden(requests)
	if len(asked) == 0 {
		return ""
	}
	return strings.Join(asked, ", ") + ": what gives its ServiceAccount these rights must be among what is installed; --service-account none gives it all rights"
}
