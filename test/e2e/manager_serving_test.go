// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	certutil "k8s.io/client-go/util/cert"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"tidekeeper.dev/tidekeeper/test/framework"
)

// TestManager_ProbesAndMetrics checks that every client may request the probes, and that only
// clients with the right to read metrics get them.
func TestManager_ProbesAndMetrics(t *testing.T) {
	// The metrics endpoint serves this certificate.
	dir := t.TempDir()
	trusted := mountCertificate(t, dir, "first")

	manager := cluster.StartManager(t, "--metrics-secure=true", "--metrics-cert-dir="+dir)
	for _, probe := range []string{"/healthz", "/readyz"} {
		if code, body, err := get(t, manager.Probes+probe, "", nil); code != http.StatusOK || body != "ok" {
			t.Errorf("%s answers %d %q (%v), want 200 ok", probe, code, body, err)
		}
	}

	url := strings.Replace(manager.Metrics, "http:", "https:", 1) + "/metrics"
	for _, name := range []string{"s29-reader", "s29-nobody"} {
		cluster.Apply(t, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace}})
	}
	cluster.Apply(t, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "s29-reader"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "tidekeeper-metrics-reader"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: "s29-reader", Namespace: namespace}},
	})
	for name, want := range map[string]int{"": http.StatusUnauthorized, "s29-nobody": http.StatusForbidden, "s29-reader": http.StatusOK} {
		framework.Eventually(t, fmt.Sprintf("metrics answer %q with %d", name, want), func() error {
			code, body, err := get(t, url, token(t, name), trusted)
			if err != nil {
				return err
			}
			if code == http.StatusOK && !strings.Contains(body, "controller_runtime_reconcile_total") {
				return fmt.Errorf("no metrics in the answer:\n%s", body)
			}
			return diff(want, code)
		})
	}
}

// TestManager_DecodingIsVerified checks that --verify-decoding decodes the objects in lists and
// watches with client-go as well, and reports no difference. Every manager of this package has this
// flag.
func TestManager_DecodingIsVerified(t *testing.T) {
	addMembers(t, "s29", 1)
	manager := cluster.StartManager(t)
	listed := manager.ReadMetrics(t).SumOf("tidekeeper_cache_decoding_verified_total", "kind", "Node")
	if listed < 1 {
		t.Error("no node of the list was verified")
	}
	cluster.Apply(t, slowly("s29", 2))
	framework.Eventually(t, "the pods of watches are verified", func() error {
		verified := manager.ReadMetrics(t).SumOf("tidekeeper_cache_decoding_verified_total", "kind", "Pod")
		if verified < 8 {
			return fmt.Errorf("%g were", verified)
		}
		return nil
	})
	if differences, ok := manager.ReadMetrics(t).Value("tidekeeper_cache_decoding_differences_total", map[string]string{"kind": "Pod"}); differences != 0 || !ok {
		t.Errorf("%g pods differ, %t", differences, ok)
	}
}

// TestManager_CertificateIsReadAgain checks that the manager serves a renewed certificate without a
// restart.
func TestManager_CertificateIsReadAgain(t *testing.T) {
	dir := t.TempDir()
	first := mountCertificate(t, dir, "first")
	manager := cluster.StartManager(t, "--metrics-secure=true", "--metrics-cert-dir="+dir)
	url := strings.Replace(manager.Metrics, "http:", "https:", 1) + "/metrics"
	framework.Eventually(t, "the first certificate is served", func() error {
		_, _, err := get(t, url, "", first)
		return err
	})
	second := mountCertificate(t, dir, "second")
	framework.Eventually(t, "the second certificate is served", func() error {
		_, _, err := get(t, url, "", second)
		return err
	})
	if _, _, err := get(t, url, "", first); err == nil {
		t.Error("the first certificate is still served")
	}
}

// TestManager_CertificateNeedsNoInotify checks that the manager serves metrics with a certificate
// even if other pods on its node have used up all inotify instances, of which a user has 128 by
// default.
func TestManager_CertificateNeedsNoInotify(t *testing.T) {
	const limit = "echo 0 > /proc/sys/user/max_inotify_instances"
	unshare := []string{"--user", "--map-root-user", "sh", "-c"}
	if out, err := exec.Command("unshare", append(unshare, limit)...).CombinedOutput(); err != nil {
		t.Skipf("no user namespace in which inotify can be limited: %v: %s", err, out)
	}
	binary, err := framework.Binary("TIDEKEEPER_BIN", "tidekeeper")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	limited := filepath.Join(dir, "limited")
	script := fmt.Sprintf("#!/bin/sh\nexec unshare %s '%s && exec \"$@\"' - '%s' \"$@\"\n", strings.Join(unshare, " "), limit, binary)
	if err := os.WriteFile(limited, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	trusted := mountCertificate(t, dir, "only")
	manager := cluster.WithManager(limited).StartManager(t, "--metrics-secure=true", "--metrics-cert-dir="+dir)
	framework.Eventually(t, "metrics are served", func() error {
		code, _, err := get(t, strings.Replace(manager.Metrics, "http:", "https:", 1)+"/metrics", "", trusted)
		if err != nil {
			return err
		}
		return diff(http.StatusUnauthorized, code)
	})
}

// mountCertificate creates a certificate and puts it into `dir` as a kubelet updates a Secret
// volume: atomically, by a symlink to a directory with the given name. It returns a certificate
// pool that trusts the certificate.
func mountCertificate(t *testing.T, dir, name string) *x509.CertPool {
	t.Helper()
	certificate, key, err := certutil.GenerateSelfSignedCertKey("127.0.0.1", nil, nil)
	if err == nil {
		err = os.Mkdir(filepath.Join(dir, name), 0o700)
	}
	for file, content := range map[string][]byte{"tls.crt": certificate, "tls.key": key} {
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name, file), content, 0o600)
		}
		if _, missing := os.Lstat(filepath.Join(dir, file)); err == nil && missing != nil {
			err = os.Symlink(filepath.Join("..data", file), filepath.Join(dir, file))
		}
	}
	if err == nil {
		err = os.Symlink(name, filepath.Join(dir, "..new"))
	}
	if err == nil {
		err = os.Rename(filepath.Join(dir, "..new"), filepath.Join(dir, "..data"))
	}
	if err != nil {
		t.Fatal(err)
	}
	trusted := x509.NewCertPool()
	trusted.AppendCertsFromPEM(certificate)
	return trusted
}

// TestManager_PoolMetrics checks the values of a pool's metrics.
func TestManager_PoolMetrics(t *testing.T) {
	manager := cluster.StartManager(t)
	addMembers(t, "s29m", 2, "--allocatable", "cpu=3500m,memory=1Gi,pods=110")
	cluster.Apply(t, pool("s29m"))
	healthyWith(t, "s29m", 2)
	relabel(t, "s29m-2", map[string]string{"example.com/s29m": "by-hand"})
	eventuallyShape(t, "s29m-2", shapeFrom("s29m"))
	for _, want := range []string{
		`tidekeeper_nodepool_nodes{pool="s29m",state="all"} 2`,
		`tidekeeper_nodepool_nodes{pool="s29m",state="ready"} 2`,
		`tidekeeper_nodepool_nodes{pool="s29m",state="outdated"} 0`,
		`tidekeeper_nodepool_resource{kind="allocatable",pool="s29m",resource="cpu"} 7`,
		`tidekeeper_nodepool_resource{kind="capacity",pool="s29m",resource="memory"} 2.147483648e+09`,
		`tidekeeper_nodepool_ready{pool="s29m",reason="Healthy"} 1`,
		`tidekeeper_nodepool_drift_corrections_total{pool="s29m"} 1`,
		`tidekeeper_nodepool_node_writes_total{result="written"} 3`,
		`tidekeeper_nodepool_node_writes_total{result="error"} 0`,
	} {
		framework.Eventually(t, "a metric", func() error {
			_, body, err := get(t, manager.Metrics+"/metrics", "", nil)
			if err == nil && !strings.Contains(body, want+"\n") {
				return fmt.Errorf("the line is missing: %s", want)
			}
			return err
		})
	}
	cluster.Delete(t, framework.Pool("s29m"))
	eventuallyGone(t, framework.Pool("s29m"))
	framework.Eventually(t, "the metrics of the pool are dropped", func() error {
		_, body, err := get(t, manager.Metrics+"/metrics", "", nil)
		if err == nil && strings.Contains(body, `"s29m"`) {
			return errors.New("they still name it")
		}
		return err
	})
}

// TestManager_Election checks that only one of two managers acts. The standby must take over
// immediately when the leader shuts down cleanly, and after the lease has expired when the leader
// is killed.
func TestManager_Election(t *testing.T) {
	elect := cluster.ElectUntilReleased(t)
	first := cluster.StartManager(t, elect...)
	leader := eventuallyLeader(t, "")
	// The standby is ready, too.
	second := cluster.StartManager(t, elect...)
	addMembers(t, "s29e", 1)
	p := pool("s29e")
	cluster.Apply(t, p)
	healthyWith(t, "s29e", 1)
	if strings.Contains(second.Log(), "Patched a node") {
		t.Error("the standby acts")
	}
	framework.Eventually(t, "the leader logs that it acts", func() error {
		if !strings.Contains(first.Log(), "Patched a node") {
			return errors.New("it does not")
		}
		return nil
	})

	// If the lease were not released, it would expire only after an hour.
	first.Stop(t)
	leader = eventuallyLeader(t, leader)
	cluster.Change(t, p, func() { p.Spec.Labels["example.com/s29e"] = "20" })
	framework.Eventually(t, "the new leader acts", func() error { return diff("20", shapeOf(t, "s29e-1").Labels["example.com/s29e"]) })

	third := cluster.StartManager(t, elect...)
	second.Kill(t)
	cluster.ExpireLease(t)
	eventuallyLeader(t, leader)
	cluster.Change(t, p, func() { p.Spec.Labels["example.com/s29e"] = "30" })
	framework.Eventually(t, "the third leader acts", func() error { return diff("30", shapeOf(t, "s29e-1").Labels["example.com/s29e"]) })
	cluster.Delete(t, p)
	eventuallyGone(t, p)
	third.Stop(t)
}

// eventuallyLeader waits until a manager other than `before` holds the lease, and returns that
// manager's identity.
func eventuallyLeader(t *testing.T, before string) (holder string) {
	t.Helper()
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: "tidekeeper", Namespace: namespace}}
	framework.Eventually(t, "there is a new leader", func() error {
		if err := cluster.Get(t.Context(), client.ObjectKeyFromObject(lease), lease); err != nil {
			return err
		}
		if holder = ""; lease.Spec.HolderIdentity != nil {
			holder = *lease.Spec.HolderIdentity
		}
		if holder == "" || holder == before {
			return fmt.Errorf("the lease is held by %q", holder)
		}
		return nil
	})
	return holder
}

// get requests a manager's URL over HTTP, or over HTTPS if `trusted` is not nil, and returns the
// status code and the body.
func get(t *testing.T, url, token string, trusted *x509.CertPool) (int, string, error) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	c := http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: trusted}, DisableKeepAlives: true}}
	response, err := c.Do(request)
	if err != nil {
		return 0, "", err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	return response.StatusCode, string(body), err
}

// token returns a token for the named service account, or "" if the name is empty.
func token(t *testing.T, name string) string {
	t.Helper()
	if name == "" {
		return ""
	}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace}}
	request := &authenticationv1.TokenRequest{}
	if err := cluster.SubResource("token").Create(context.Background(), account, request); err != nil {
		t.Fatal(err)
	}
	return request.Status.Token
}

// TestManager_ElectionNeedsItsRights checks that a manager that may not acquire the lease exits
// with an error, instead of reporting readiness and waiting forever.
func TestManager_ElectionNeedsItsRights(t *testing.T) {
	for _, tt := range []struct {
		name string
		args []string
		want string
	}{{
		name: "no rights",
		args: []string{"--leader-elect", "--leader-elect-resource-namespace=default"},
		want: "does not let these credentials create, get, update the lease tidekeeper in the namespace default, " +
			"so this manager could never lead: grant them the rights in config/rbac, or name another namespace with --leader-elect-resource-namespace\n",
	}, {
		name: "no namespace",
		args: []string{"--kubeconfig", cluster.Kubeconfig, "--leader-elect", "--leader-elect-resource-namespace=nowhere"},
		want: "has no namespace nowhere, so this manager could never lead: create it, or name another namespace with --leader-elect-resource-namespace\n",
	}} {
		t.Run(tt.name, func(t *testing.T) {
			manager := cluster.LaunchManager(t, tt.args...)
			code := manager.Wait(t)
			want := "Error: the cluster at " + cluster.Config.Host + " " + tt.want
			// Ignore debug messages.
			said := slices.DeleteFunc(slices.Collect(strings.Lines(manager.Log())), func(line string) bool { return strings.Contains(line, "level=debug") })
			if code != 1 || strings.Join(said, "") != want {
				t.Errorf("it ended with exit code %d, want 1, and said:\n%s\nwant:\n%s", code, manager.Log(), want)
			}
		})
	}
}
