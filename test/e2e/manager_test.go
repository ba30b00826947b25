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
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	certutil "k8s.io/client-go/util/cert"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/test/framework"
)

const namespace = framework.ManagerNamespace

// The scheme maps our kind to its Go type, the RESTMapper to its resource, and
// discovery finds it by the names that people type.
func TestS2_1_SchemeAndRESTMapper(t *testing.T) {
	gvk, err := cluster.GroupVersionKindFor(&tidekeeperv1.NodePool{})
	if err != nil {
		t.Fatal(err)
	}
	if want := (schema.GroupVersionKind{Group: "tidekeeper.dev", Version: "v1", Kind: "NodePool"}); gvk != want {
		t.Errorf("the Go type is of kind %v, want %v", gvk, want)
	}
	mapping, err := cluster.RESTMapper().RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil {
		t.Fatal(err)
	}
	if want := gvk.GroupVersion().WithResource("nodepools"); mapping.Resource != want || mapping.Scope.Name() != "root" {
		t.Errorf("the kind is served as %v, scope %s; want %v, scope root", mapping.Resource, mapping.Scope.Name(), want)
	}
	d, err := discovery.NewDiscoveryClientForConfig(cluster.Config)
	if err != nil {
		t.Fatal(err)
	}
	resources, err := d.ServerResourcesForGroupVersion(gvk.GroupVersion().String())
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, r := range resources.APIResources {
		names = append(names, r.Name)
	}
	slices.Sort(names)
	if err := diff([]string{"nodepools", "nodepools/status", "scheduledrestarts", "scheduledrestarts/status"}, names); err != nil {
		t.Errorf("what discovery finds %v", err)
	}
}

// One manager runs the controllers that a flag chooses, and stops them in order.
func TestS2_2_ChosenControllersStopInOrder(t *testing.T) {
	manager := cluster.StartManager(t, "--controllers=nodepool")
	addMembers(t, "s22", 1)
	cluster.Apply(t, pool("s22"))
	healthyWith(t, "s22", 1)
	manager.Stop(t) // fails the test if the exit code is not 0
	workers, caches := strings.Index(manager.Log(), "All workers finished"), strings.Index(manager.Log(), "Stopping and waiting for caches")
	if workers < 0 || caches < workers {
		t.Errorf("the caches stop before the workers have finished:\n%s", manager.Log())
	}
	for _, flag := range []string{"--controllers=nodepool,nonsense", "--controllers=-nodepool"} {
		if got := framework.Run(t, flag); got.Wait(t) != 1 || !strings.HasPrefix(got.Log(), "Error: --controllers=") || strings.Count(got.Log(), "\n") != 1 {
			t.Errorf("%s is answered by %q, want one line that begins with Error: --controllers=", flag, got.Log())
		}
	}
}

// The cache watches each kind once, however many controllers read it. The list
// comes along as a stream.
func TestS2_3_OneWatchPerKind(t *testing.T) {
	audit := cluster.Audit(t, "tidekeeper/")
	cluster.StartManager(t)
	open := map[string]int{}
	framework.Eventually(t, "every kind is watched once", func() error {
		for resource, n := range audit.OpenWatches(t) {
			open[resource] += n
		}
		return diff(map[string]int{
			"nodepools": 1, "nodes": 1, "pods": 1, "runtimeclasses": 1,
			"scheduledrestarts": 1, "deployments": 1, "statefulsets": 1, "daemonsets": 1,
		}, open)
	})
}

// The client reads from the cache and writes to the API server: while a pool
// is brought about, nothing is read but what the finalizer's last look needs.
func TestS2_4_ReadsComeFromTheCache(t *testing.T) {
	manager := cluster.StartManager(t)
	audit := cluster.Audit(t, "tidekeeper/")
	members := addMembers(t, "s24", 3)
	cluster.Apply(t, pool("s24"))
	healthyWith(t, "s24", 3)
	cluster.EventuallyEvent(t, "NodePool", "s24", "Normal NodesUpdated: brought 3 nodes (s24-1, s24-2, s24-3) up to date")
	relabel(t, "s24-2", map[string]string{"example.com/s24": "by-hand"})
	eventuallyShape(t, "s24-2", shapeFrom("s24"))
	manager.Stop(t)

	patched := map[string]int{}
	for _, r := range audit.Requests(t) {
		if !r.Writes() {
			t.Errorf("read past the cache: %s", r)
		}
		if r.Resource == "nodes" {
			patched[r.Name]++
		}
	}
	// One write for each node, and one more for what was changed by hand.
	if err := diff(map[string]int{members[0]: 1, members[1]: 2, members[2]: 1}, patched); err != nil {
		t.Errorf("writes per node %v", err)
	}
}

// Which pods a NoExecute taint would drive out of a node is asked of an index
// of the cache, not of the API server.
func TestS2_5_PodsByNodeFromAnIndex(t *testing.T) {
	cluster.StartManager(t, "--no-execute-interval=100ms")
	addMembers(t, "s25", 1)
	d := deployment("s25", 2, corev1.PodSpec{
		NodeSelector: map[string]string{role("s25"): ""},
		Containers:   []corev1.Container{{Name: "app", Image: "example.com/app:1"}},
	})
	cluster.Apply(t, d)
	eventuallyReady(t, d)

	audit := cluster.Audit(t, "tidekeeper/")
	p := framework.Pool("s25")
	p.Spec.Taints = []tidekeeperv1.Taint{{Key: "example.com/s25", Effect: corev1.TaintEffectNoExecute}}
	cluster.Apply(t, p)
	healthyWith(t, "s25", 1)
	cluster.EventuallyEvent(t, "NodePool", "s25", "Normal NodesEvicting: NoExecute taint goes onto node s25-1")
	for _, r := range audit.Requests(t) {
		if r.Resource == "pods" {
			t.Errorf("pods are asked of the API server: %s", r)
		}
	}
}

// The finalizer holds a deleted pool until its nodes are clean.
func TestS2_6_Finalizer(t *testing.T) {
	manager := cluster.StartManager(t)
	addMembers(t, "s26", 1)
	p := pool("s26")
	cluster.Apply(t, p)
	healthyWith(t, "s26", 1)
	cluster.Refresh(t, p)
	if err := diff([]string{"tidekeeper.dev/node-pool"}, p.Finalizers); err != nil {
		t.Errorf("finalizers %v", err)
	}
	manager.Kill(t)
	cluster.Delete(t, p)
	eventuallyShape(t, "s26-1", shapeFrom("s26"))
	cluster.Refresh(t, p)
	cluster.StartManager(t)
	eventuallyGone(t, p)
	if err := diff(clean, shapeOf(t, "s26-1")); err != nil {
		t.Errorf("the pool is gone, and its node is not clean: %v", err)
	}
}

// The RuntimeClass is owned: its deletion re-queues the pool, which makes it
// anew, and the pool's deletion lets the garbage collector delete it.
func TestS2_7_OwnerReference(t *testing.T) {
	cluster.StartManager(t)
	p := pool("s27")
	p.Spec.Handler = "runc"
	cluster.Apply(t, p)
	class := &nodev1.RuntimeClass{ObjectMeta: metav1.ObjectMeta{Name: "node-pool-s27"}}
	there := func() error {
		uid := class.UID
		if err := cluster.Get(t.Context(), client.ObjectKeyFromObject(class), class); err != nil {
			return err
		}
		if class.UID == uid {
			return errors.New("it is the same object as before")
		}
		return nil
	}
	framework.Eventually(t, "the RuntimeClass is there", there)
	cluster.Delete(t, class.DeepCopy())
	framework.Eventually(t, "the RuntimeClass is there again", there)
	cluster.Delete(t, p)
	eventuallyGone(t, p)
	eventuallyGone(t, class)
}

// Creation, change and deletion of a node all end as a key in the queue.
func TestS2_8_EveryEventCounts(t *testing.T) {
	cluster.StartManager(t)
	cluster.Apply(t, pool("s28"))
	eventuallyReason(t, "s28", "NoNodes")
	cluster.AddNodes(t, "s28", 2)
	relabel(t, "s28-1", map[string]string{role("s28"): ""}) // changed
	healthyWith(t, "s28", 1)
	addMembers(t, "s28", 1) // created, as s28-3
	healthyWith(t, "s28", 2)
	cluster.Delete(t, framework.Node("s28-1")) // deleted
	healthyWith(t, "s28", 1)
	cluster.Delete(t, framework.Node("s28-3"))
	eventuallyReason(t, "s28", "NoNodes")
}

// Probes answer; metrics answer whoever may read them, and nobody else.
func TestS2_9_ProbesAndMetrics(t *testing.T) {
	// The metrics endpoint shows the certificate that it is given.
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

// A certificate that is renewed is shown without a restart.
func TestS2_9_CertificateIsReadAgain(t *testing.T) {
	dir := t.TempDir()
	first := mountCertificate(t, dir, "first")
	manager := cluster.StartManager(t, "--metrics-secure=true", "--metrics-cert-dir="+dir)
	url := strings.Replace(manager.Metrics, "http:", "https:", 1) + "/metrics"
	framework.Eventually(t, "the first certificate is shown", func() error {
		_, _, err := get(t, url, "", first)
		return err
	})
	second := mountCertificate(t, dir, "second")
	framework.Eventually(t, "the second certificate is shown", func() error {
		_, _, err := get(t, url, "", second)
		return err
	})
	if _, _, err := get(t, url, "", first); err == nil {
		t.Error("the first certificate is shown too")
	}
}

// mountCertificate makes a certificate and puts it into the directory as a kubelet
// puts a secret there: at once, by a link to a directory of that name. It returns
// the certificate as what to trust.
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

// The metrics show the pool, exactly.
func TestS2_9_PoolMetrics(t *testing.T) {
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
				return fmt.Errorf("there is no line %s", want)
			}
			return err
		})
	}
	cluster.Delete(t, framework.Pool("s29m"))
	eventuallyGone(t, framework.Pool("s29m"))
	framework.Eventually(t, "the metrics forget the pool", func() error {
		_, body, err := get(t, manager.Metrics+"/metrics", "", nil)
		if err == nil && strings.Contains(body, `"s29m"`) {
			return errors.New("they still name it")
		}
		return err
	})
}

// Of two managers one acts; the other takes over at once when it stops in
// order, and soon when it does not.
func TestS2_9_Election(t *testing.T) {
	elect := framework.Elect
	first := cluster.StartManager(t, elect...)
	leader := eventuallyLeader(t, "")
	// The standby is ready too.
	second := cluster.StartManager(t, elect...)
	addMembers(t, "s29e", 1)
	p := pool("s29e")
	cluster.Apply(t, p)
	healthyWith(t, "s29e", 1)
	if strings.Contains(second.Log(), "Patching node") {
		t.Error("the standby acts")
	}
	if !strings.Contains(first.Log(), "Patching node") {
		t.Error("the leader does not act")
	}

	start := time.Now()
	first.Stop(t)
	leader = eventuallyLeader(t, leader)
	if took := time.Since(start); took > 3*time.Second {
		t.Errorf("the standby took over after %s; a lease that is released is free at once", took)
	}
	cluster.Change(t, p, func() { p.Spec.Labels["example.com/s29e"] = "20" })
	framework.Eventually(t, "the new leader acts", func() error { return diff("20", shapeOf(t, "s29e-1").Labels["example.com/s29e"]) })

	third := cluster.StartManager(t, elect...)
	second.Kill(t)
	eventuallyLeader(t, leader)
	cluster.Change(t, p, func() { p.Spec.Labels["example.com/s29e"] = "30" })
	framework.Eventually(t, "the third leader acts", func() error { return diff("30", shapeOf(t, "s29e-1").Labels["example.com/s29e"]) })
	cluster.Delete(t, p)
	eventuallyGone(t, p)
	third.Stop(t)
}

// eventuallyLeader waits until somebody else than before holds the lease.
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

// get asks a manager over HTTP, or over HTTPS with the certificates it trusts.
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

// token returns a token of a service account, or none for no name.
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

// A manager that could never have the lease says so and ends, rather than be ready and
// wait for ever.
func TestS2_9_ElectionNeedsItsRights(t *testing.T) {
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
			// Besides what it logs for who debugs it.
			said := slices.DeleteFunc(slices.Collect(strings.Lines(manager.Log())), func(line string) bool { return strings.Contains(line, "level=debug") })
			if code != 1 || strings.Join(said, "") != want {
				t.Errorf("it ended with exit code %d, want 1, and said:\n%s\nwant:\n%s", code, manager.Log(), want)
			}
		})
	}
}
