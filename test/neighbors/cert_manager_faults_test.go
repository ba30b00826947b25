// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package neighbors

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	sandbox "tidekeeper.dev/tidekeeper/sandbox/client"
	"tidekeeper.dev/tidekeeper/test/framework"
)

// certManagerWrites matches all of cert-manager's writes except its events.
const certManagerWrites = `match: {verbs: [write], resources: [secrets, certificates.cert-manager.io/status, certificaterequests.cert-manager.io, certificaterequests.cert-manager.io/status, issuers.cert-manager.io/status]}`

// certManagerFaults maps the names of fault scenarios to rules of the fault proxy. cert-manager
// survives these faults while it issues and renews certificates: each certificate is issued and
// correct, and no objects are left over. The number of faults is limited to save time, because
// cert-manager waits for up to five minutes after repeated failures.
var certManagerFaults = map[string]string{
	"lost-answers":  `- {name: lost, ` + certManagerWrites + `, count: {every: 3, times: 6}, fault: {kind: LoseAnswer}}`,
	"conflicts":     `- {name: conflict, ` + certManagerWrites + `, count: {every: 3, times: 6}, fault: {kind: Error, code: 409, reason: Conflict}}`,
	"errors":        `- {name: error, ` + certManagerWrites + `, count: {every: 3, times: 6}, fault: {kind: Error, code: 500, reason: InternalError}}`,
	"throttled":     `- {name: throttled, ` + certManagerWrites + `, count: {every: 3, times: 6}, fault: {kind: Error, code: 429, reason: TooManyRequests}}`,
	"killed-before": `- {name: killed, ` + certManagerWrites + `, count: {every: 3, times: 6}, fault: {kind: Crash, at: before}}`,
	"killed-after":  `- {name: killed, ` + certManagerWrites + `, count: {every: 3, times: 6}, fault: {kind: Crash, at: after}}`,
	"stale-reads":   `- {name: stale, match: {verbs: [get], resources: [secrets, certificates.cert-manager.io, certificaterequests.cert-manager.io]}, fault: {kind: Stale}}`,
	"broken-watches": `- {name: cut, match: {resources: [certificates.cert-manager.io]}, count: {every: 3, times: 3}, fault: {kind: CutWatch}}
- {name: expired, match: {resources: [certificaterequests.cert-manager.io]}, count: {every: 2, times: 3}, fault: {kind: ExpireWatch}}`,
	"stalled-watches": `- {name: certificates, match: {resources: [certificates.cert-manager.io]}, count: {every: 3}, fault: {kind: DelayEvent, for: 1s}}
- {name: requests, match: {resources: [certificaterequests.cert-manager.io]}, count: {every: 2}, fault: {kind: DelayEvent, for: 1s}}`,
}

// TestCertManagerFaults runs cert-manager behind the fault proxy, as sandbox/docs/fault-proxy.md
// recommends for any operator, and makes it issue and renew certificates while requests fail.
func TestCertManagerFaults(t *testing.T) {
	installCertManager(t)
	for name, rules := range certManagerFaults {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := bringUp(t, name, rules)
			revision := b.settled(t, 1)
			secret := &corev1.Secret{}
			secret.Namespace, secret.Name = b.namespace, "web"
			cluster.Delete(t, secret)
			revision = b.settled(t, revision+1)
			t.Logf("web was issued %d times", revision)
			b.assertFired(t)
		})
	}

	// cert-manager does not survive this fault. The event of the new Secret is late, and the
	// Certificate's event already reports that it is issued. cert-manager then assumes that the
	// Secret is lost, and reissues the certificate again and again.
	t.Run("late-secret", func(t *testing.T) {
		t.Parallel()
		b := bringUp(t, "late-secret", `- {name: late, match: {resources: [secrets]}, events: {types: [ADDED], names: [web]}, fault: {kind: DelayEvent, for: 5s}}`)
		revision := b.settled(t, 2)
		b.assertFired(t)
		t.Logf("it was issued %d times", revision)
	})
}

// behind is a cert-manager that serves one namespace behind a fault proxy.
type behind struct {
	namespace, rules string
	log              func() []sandbox.LogEntry
}

// bringUp starts a cert-manager behind a fault proxy with the given rules, and makes it issue two
// certificates in a new namespace.
func bringUp(t *testing.T, name, rules string) behind {
	t.Helper()
	b := behind{namespace: "faults-" + name, rules: rules}
	inNamespace(t, b.namespace, authority+fmt.Sprintf(certificate, "web"))
	b.log = runBehindProxy(t, "rules:\n"+rules+"\n", b.namespace)
	return b
}

// settled waits until both certificates are ready, no objects are left over, and the leaf
// certificate (not the CA) has been issued at least `least` times. It returns the number of times.
func (b behind) settled(t *testing.T, least int64) (revision int64) {
	t.Helper()
	framework.EventuallyWithin(t, 8*framework.Patience, "all is issued and cleaned up", func() (err error) {
		authority, err := issued(t, b.namespace, "authority", 1)
		if err != nil {
			return fmt.Errorf("authority: %w", err)
		}
		if revision, err = issued(t, b.namespace, "web", least); err != nil {
			return fmt.Errorf("web: %w", err)
		}
		return leftOver(t, b.namespace, authority+revision)
	})
	return revision
}

// assertFired asserts that each fault rule of the proxy has fired.
func (b behind) assertFired(t *testing.T) {
	t.Helper()
	fired := map[string]int{}
	for _, entry := range b.log() {
		fired[entry.Rule]++
	}
	for _, rule := range strings.Split(b.rules, "name: ")[1:] {
		rule, _, _ = strings.Cut(rule, ",")
		t.Logf("%s was done %d times", rule, fired[rule])
		if fired[rule] == 0 {
			t.Errorf("the rule %s never had an effect", rule)
		}
	}
}

// runBehindProxy runs a cert-manager for one namespace as a child process of the fault proxy, which
// also kills it. It returns a function that reads the proxy's log.
func runBehindProxy(t *testing.T, rules, namespace string) func() []sandbox.LogEntry {
	t.Helper()
	program, err := framework.Binary("CERT_MANAGER_BIN", "cert-manager")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	upstream, scenario, log := filepath.Join(dir, "upstream"), filepath.Join(dir, "scenario.yaml"), filepath.Join(dir, "log")
	account := cluster.Sandbox(t, "kubeconfig", "--user", certManagerUser, "--group=system:serviceaccounts", "--group=system:serviceaccounts:cert-manager")
	for file, text := range map[string]string{upstream: account, scenario: rules} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	framework.RunTool(t, "SANDBOX_BIN", "sandbox", "proxy", "--kubeconfig", upstream, "--write-kubeconfig", filepath.Join(dir, "kubeconfig"),
		"--scenario", scenario, "--log", log, "--", program, "--namespace", namespace)
	return func() []sandbox.LogEntry {
		t.Helper()
		entries, err := (&sandbox.Proxy{LogFile: log}).LogSince(0)
		if err != nil {
			t.Fatal(err)
		}
		return entries
	}
}

// leftOver returns nil if the namespace has the Secrets of both certificates and no others, and one
// CertificateRequest for each of `issuances`.
func leftOver(t *testing.T, namespace string, issuances int64) error {
	t.Helper()
	secrets := &corev1.SecretList{}
	if err := cluster.List(t.Context(), secrets, client.InNamespace(namespace)); err != nil {
		return err
	}
	var names []string
	for _, secret := range secrets.Items {
		names = append(names, secret.Name)
	}
	requests := &unstructured.UnstructuredList{}
	requests.SetGroupVersionKind(schema.GroupVersionKind{Group: "cert-manager.io", Version: "v1", Kind: "CertificateRequestList"})
	if err := cluster.List(t.Context(), requests, client.InNamespace(namespace)); err != nil {
		return err
	}
	slices.Sort(names)
	if !slices.Equal(names, []string{"authority", "web"}) || len(requests.Items) != int(issuances) {
		return fmt.Errorf("there are %d CertificateRequests, and the Secrets %q", len(requests.Items), names)
	}
	return nil
}
