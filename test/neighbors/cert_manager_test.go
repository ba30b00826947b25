// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package neighbors

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"tidekeeper.dev/tidekeeper/test/framework"
)

// certManagerUser is the user name of cert-manager's own ServiceAccount.
const certManagerUser = "system:serviceaccount:cert-manager:cert-manager"

// installCertManager installs cert-manager's CRDs, and the service account and the RBAC of its
// chart, but no webhook.
func installCertManager(t *testing.T) {
	t.Helper()
	module := framework.ModuleDir(t, "hack/cert-manager", "github.com/cert-manager/cert-manager")
	rights, err := framework.Helm(t, "template", "cert-manager", filepath.Join(module, "deploy", "charts", "cert-manager"),
		"--namespace=cert-manager", "--show-only=templates/rbac.yaml", "--show-only=templates/serviceaccount.yaml")
	if err != nil {
		t.Fatalf("%v\n%s", err, rights)
	}
	cluster.MustKubectl(t, "", "apply", "--server-side", "-f", filepath.Join(module, "deploy", "crds"))
	cluster.MustKubectl(t, "", "wait", framework.LongTimeout, "--for=condition=Established", "crd", "--all")
	cluster.MustKubectl(t, "apiVersion: v1\nkind: Namespace\nmetadata: {name: cert-manager}", "apply", "-f", "-")
	cluster.MustKubectl(t, rights, "apply", "-f", "-")
}

// authority is the manifest of a self-signed CA certificate, and of an Issuer that uses it.
const authority = `apiVersion: cert-manager.io/v1
kind: Issuer
metadata: {name: self-signed}
spec: {selfSigned: {}}
---
apiVersion: cert-manager.io/v1
kind: Certificate
metadata: {name: authority}
spec:
  isCA: true
  commonName: authority
  secretName: authority
  privateKey: {algorithm: ECDSA, size: 256}
  issuerRef: {name: self-signed}
---
apiVersion: cert-manager.io/v1
kind: Issuer
metadata: {name: authority}
spec: {ca: {secretName: authority}}
`

// certificate is the manifest of a Certificate that the CA issues into a Secret of the same name.
const certificate = `---
apiVersion: cert-manager.io/v1
kind: Certificate
metadata: {name: %[1]s}
spec:
  dnsNames: [%[1]s.example.com]
  revisionHistoryLimit: 100
  secretName: %[1]s
  privateKey: {algorithm: ECDSA, size: 256}
  issuerRef: {name: authority}
`

// inNamespace creates a namespace with the given manifests, and deletes it when the test ends.
func inNamespace(t *testing.T, name, manifests string) {
	t.Helper()
	namespace := &corev1.Namespace{}
	namespace.Name = name
	cluster.Apply(t, namespace)
	cluster.MustKubectl(t, manifests, "apply", "-n", name, "-f", "-")
}

func certificateOf(t *testing.T, namespace, name string) *unstructured.Unstructured {
	t.Helper()
	c := &unstructured.Unstructured{}
	c.SetGroupVersionKind(schema.GroupVersionKind{Group: "cert-manager.io", Version: "v1", Kind: "Certificate"})
	c.SetNamespace(namespace)
	c.SetName(name)
	cluster.Refresh(t, c)
	return c
}

// revisionOf returns a Certificate's revision, which counts its issuances.
func revisionOf(t *testing.T, namespace, name string) int64 {
	t.Helper()
	revision, _, _ := unstructured.NestedInt64(certificateOf(t, namespace, name).Object, "status", "revision")
	return revision
}

// issued returns a Certificate's revision, and an error unless the Certificate is ready, was issued
// at least `least` times, no issuance is in progress, and its Secret contains a certificate. On a
// busy machine the event of a new Secret can be late, and cert-manager then issues the certificate
// once more: no test may count on an exact revision.
func issued(t *testing.T, namespace, name string, least int64) (revision int64, err error) {
	t.Helper()
	c := certificateOf(t, namespace, name)
	revision, _, _ = unstructured.NestedInt64(c.Object, "status", "revision")
	conditions, _, _ := unstructured.NestedSlice(c.Object, "status", "conditions")
	got := []string{}
	for _, condition := range conditions {
		condition, _ := condition.(map[string]any)
		got = append(got, fmt.Sprint(condition["type"], " ", condition["status"]))
	}
	if strings.Join(got, ", ") != "Ready True" {
		return revision, fmt.Errorf("the conditions are %q", got)
	}
	if revision < least {
		return revision, fmt.Errorf("the revision is %d, want at least %d", revision, least)
	}
	if next, found, _ := unstructured.NestedString(c.Object, "status", "nextPrivateKeySecretName"); found {
		return revision, fmt.Errorf("the next private key is still there: %s", next)
	}
	secret := &corev1.Secret{}
	if err := cluster.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, secret); err != nil {
		return revision, err
	}
	if len(secret.Data[corev1.TLSCertKey]) == 0 || len(secret.Data[corev1.TLSPrivateKeyKey]) == 0 {
		return revision, errors.New("the Secret has no certificate")
	}
	return revision, nil
}
