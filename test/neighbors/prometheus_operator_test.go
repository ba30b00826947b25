// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package neighbors

import (
	"bytes"
	"compress/gzip"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"tidekeeper.dev/tidekeeper/test/framework"
)

// prometheusResource is the manifest of a Prometheus that selects the objects of config/monitoring,
// and rejects ServiceMonitors that reference files. Its scrape class replaces a cluster network: it
// maps the addresses of the managers' Pods to the addresses on this machine at which the managers
// serve metrics.
const prometheusResource = `
apiVersion: monitoring.coreos.com/v1
kind: Prometheus
metadata:
  name: main
  namespace: default
spec:
  serviceAccountName: prometheus
  serviceMonitorNamespaceSelector: {}
  serviceMonitorSelector: {matchLabels: {app.kubernetes.io/name: tidekeeper}}
  ruleNamespaceSelector: {}
  ruleSelector: {matchLabels: {app.kubernetes.io/name: tidekeeper}}
  arbitraryFSAccessThroughSMs: {deny: true}
  evaluationInterval: 1s
  scrapeClasses:
  - name: this-machine
    default: true
    relabelings:
    - {sourceLabels: [__address__], regex: "%s:8443", targetLabel: __address__, replacement: "%s"}
    - {sourceLabels: [__address__], regex: "%s:8443", targetLabel: __address__, replacement: "%s"}
`

// twoPools is the manifest of two pools that set the same label on the same node.
const twoPools = `
apiVersion: tidekeeper.dev/v1
kind: NodePool
metadata: {name: older}
spec: {selector: {matchLabels: {kubernetes.io/os: linux}}, labels: {example.com/pool: older}}
---
apiVersion: tidekeeper.dev/v1
kind: NodePool
metadata: {name: younger}
spec: {selector: {matchLabels: {kubernetes.io/os: linux}}, labels: {example.com/pool: younger}}
`

// TestPrometheusOperator applies config/monitoring unchanged. Prometheus Operator must generate a
// configuration from it with which Prometheus discovers both managers of config/default, scrapes
// them with the ServiceMonitor's token, and evaluates the alerts.
func TestPrometheusOperator(t *testing.T) {
	c := neighborhood{framework.StartEmpty(t, "--nodes=1")}
	c.MustKubectl(t, "", "apply", "-k", filepath.Join(framework.Root(), "config", "default"))
	c.startPrometheusOperator(t)
	c.MustKubectl(t, "", "apply", "-k", filepath.Join(framework.Root(), "config", "monitoring"))

	// The managers run as processes in place of the simulated pods.
	c.MustKubectl(t, "", "-n", framework.ManagerNamespace, "rollout", "status", "deployment/tidekeeper", framework.LongTimeout)
	c.MustKubectl(t, "", "-n", framework.ManagerNamespace, "scale", "deployment/tidekeeper", "--replicas=0")
	c.MustKubectl(t, "", "-n", framework.ManagerNamespace, "wait", framework.LongTimeout, "--for=delete", "pods", "--all")
	first := c.startManagerAsPod(t)
	second := c.startManagerAsPod(t, first)
	c.MustKubectl(t, twoPools, "apply", "-f", "-")

	c.MustKubectl(t, fmt.Sprintf(prometheusResource, first.ip, first.address, second.ip, second.address), "apply", "-f", "-")
	c.MustKubectl(t, "", "wait", "--for=condition=Reconciled", "--for=condition=Available", framework.LongTimeout, "prometheus/main")
	prometheus := c.startPrometheus(t, "main")

	c.wantScraped(t, prometheus, first, second)
	for query, want := range map[string]string{
		`sum(leader_election_master_status{job="tidekeeper-metrics"})`:        "1",
		`max(tidekeeper_nodepool_nodes{pool="older",state="all"})`:            "1",
		`count(tidekeeper_nodepool_nodes{pool="younger",state="conflicted"})`: "2",
	} {
		// A series that is missing after the first scrape exists after the second.
		framework.EventuallyWithin(t, 2*framework.Patience, query+" is "+want, func() error {
			got, err := ask(prometheus, query)
			if err == nil && got != want {
				err = errors.New("it is " + got)
			}
			return err
		})
	}

	c.wantRules(t, prometheus)
	wantAlert(t, prometheus, "TidekeeperPoolConflicted", "pending")
	wantAlert(t, prometheus, "TidekeeperDown", "inactive")
	wantAlert(t, prometheus, "TidekeeperNoLeader", "inactive")

	c.wantRefused(t, first.address)
}

// neighborhood is a cluster with third-party software installed.
type neighborhood struct{ *framework.Cluster }

// startPrometheusOperator installs Prometheus Operator and the RBAC for a Prometheus, and runs the
// operator as a process in place of its simulated pod.
func (c neighborhood) startPrometheusOperator(t *testing.T) {
	t.Helper()
	module := framework.ModuleDir(t, "hack/prometheus-operator", "github.com/prometheus-operator/prometheus-operator")
	// The apply is server-side because the CRDs are too large for the annotation that a client-side
	// apply adds.
	c.MustKubectl(t, "", "apply", "--server-side", "-f", filepath.Join(module, "bundle.yaml"))
	c.MustKubectl(t, "", "wait", framework.LongTimeout, "--for=condition=Established", "crd", "--all")
	for _, file := range []string{"service-account", "cluster-role", "cluster-role-binding"} {
		c.MustKubectl(t, "", "apply", "-f", filepath.Join(module, "example", "rbac", "prometheus", "prometheus-"+file+".yaml"))
	}
	// By default the operator serves its own metrics on all of this machine's addresses.
	c.MustKubectl(t, "", "patch", "deployment/prometheus-operator", "--type=json", "-p", fmt.Sprintf(
		`[{"op": "add", "path": "/spec/template/spec/containers/0/args/-", "value": "--web.listen-address=%s"}]`, framework.FreeAddress(t)))
	c.RunAsPod(t, "PROMETHEUS_OPERATOR_BIN", "prometheus-operator", "--from=deployment/default/prometheus-operator")
}

// managerPod is a manager process and the Pod that it stands for.
type managerPod struct {
	name, ip string
	// address is the address at which the manager serves metrics.
	address string
}

// startManagerAsPod runs the manager of config/default as a process. Only its addresses are
// changed, to addresses of this machine.
func (c neighborhood) startManagerAsPod(t *testing.T, others ...managerPod) managerPod {
	t.Helper()
	m := managerPod{address: framework.FreeAddress(t)}
	c.RunAsPod(t, "TIDEKEEPER_BIN", "tidekeeper", "--from=deployment/"+framework.ManagerNamespace+"/tidekeeper",
		"--", "--leader-elect", "--leader-elect-lease-duration=1h", "--leader-elect-renew-deadline=50m", "--metrics-bind-address="+m.address, "--health-probe-bind-address="+framework.FreeAddress(t))
	framework.Eventually(t, "the manager has a Pod", func() error {
		pods := &corev1.PodList{}
		if err := c.List(t.Context(), pods, client.InNamespace(framework.ManagerNamespace)); err != nil {
			return err
		}
		for _, pod := range pods.Items {
			known := slices.ContainsFunc(others, func(other managerPod) bool { return other.name == pod.Name })
			if !known && pod.Status.PodIP != "" {
				m.name, m.ip = pod.Name, pod.Status.PodIP
				return nil
			}
		}
		return fmt.Errorf("there are %d Pods", len(pods.Items))
	})
	return m
}

// startPrometheus runs the Prometheus for a Prometheus resource with the service account, the
// arguments and the configuration that the operator has generated, and returns its address. There
// are two differences because it is a process on this machine. It has no volumes, so folders of the
// test replace /etc/prometheus and /prometheus; in the configuration, only the path of the rules
// refers to them. It also serves on a free address.
func (c neighborhood) startPrometheus(t *testing.T, name string) string {
	t.Helper()
	full, dir := "prometheus-"+name, t.TempDir()
	get := func(name string, into client.Object) {
		t.Helper()
		if err := c.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: name}, into); err != nil {
			t.Fatal(err)
		}
	}
	write := func(content string, path ...string) {
		t.Helper()
		file := filepath.Join(dir, filepath.Join(path...))
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, []byte(content), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	set, config, web, rules := &appsv1.StatefulSet{}, &corev1.Secret{}, &corev1.Secret{}, &corev1.ConfigMapList{}
	get(full, set)
	get(full, config)
	get(full+"-web-config", web)
	if err := c.List(t.Context(), rules, client.InNamespace("default"), client.MatchingLabels{"prometheus-name": name}); err != nil {
		t.Fatal(err)
	}

	write(string(web.Data["web-config.yaml"]), "web_config", "web-config.yaml")
	for _, of := range rules.Items {
		for file, content := range of.Data {
			write(content, "rules", of.Name, file)
		}
	}
	// In the pod, a sidecar decompresses the configuration and substitutes variables.
	uncompressed, err := gzip.NewReader(bytes.NewReader(config.Data["prometheus.yaml.gz"]))
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(uncompressed)
	if err != nil {
		t.Fatal(err)
	}
	replaced := []string{"/etc/prometheus/", dir + "/", "$(POD_NAME)", set.Name + "-0"}
	for _, variable := range containerOf(t, set, "config-reloader").Env {
		if variable.ValueFrom == nil {
			replaced = append(replaced, "$("+variable.Name+")", variable.Value)
		}
	}
	write(strings.NewReplacer(replaced...).Replace(string(text)), "config_out", "prometheus.env.yaml")

	address := framework.FreeAddress(t)
	args := []string{"--service-account=default/" + set.Spec.Template.Spec.ServiceAccountName, "--", "--web.listen-address=" + address}
	paths := strings.NewReplacer("=/etc/prometheus/", "="+dir+"/", "=/prometheus", "="+dir+"/data")
	for _, arg := range containerOf(t, set, "prometheus").Args {
		args = append(args, paths.Replace(arg))
	}
	c.RunAsPod(t, "PROMETHEUS_BIN", "prometheus", args...)
	return address
}

// containerOf returns the named container of a StatefulSet's pod template.
func containerOf(t *testing.T, set *appsv1.StatefulSet, name string) corev1.Container {
	t.Helper()
	containers := set.Spec.Template.Spec.Containers
	i := slices.IndexFunc(containers, func(c corev1.Container) bool { return c.Name == name })
	if i < 0 {
		t.Fatalf("the StatefulSet %s has no container %s", set.Name, name)
	}
	return containers[i]
}

// target is a scrape target in the response of Prometheus' API.
type target struct {
	ScrapePool, ScrapeURL, ScrapeInterval, Health, LastError string
	Labels                                                   map[string]string
}

// wantScraped waits until the given managers are Prometheus' only targets, and have been scraped.
// The first scrape happens within the ServiceMonitor's interval.
func (c neighborhood) wantScraped(t *testing.T, prometheus string, managers ...managerPod) {
	t.Helper()
	var want []target
	for _, m := range managers {
		want = append(want, target{
			ScrapePool: "serviceMonitor/" + framework.ManagerNamespace + "/tidekeeper/0", ScrapeURL: "https://" + m.address + "/metrics",
			ScrapeInterval: "30s", Health: "up",
			// The alerts and dashboards select series by this job label.
			Labels: map[string]string{
				"job": "tidekeeper-metrics", "service": "tidekeeper-metrics", "endpoint": "https", "namespace": framework.ManagerNamespace,
				"pod": m.name, "container": "manager", "instance": m.address,
			},
		})
	}
	byURL := func(a, b target) int { return strings.Compare(a.ScrapeURL, b.ScrapeURL) }
	slices.SortFunc(want, byURL)
	framework.EventuallyWithin(t, 2*framework.Patience, "Prometheus scrapes both managers", func() error {
		var got struct{ ActiveTargets []target }
		if err := framework.AskPrometheus(prometheus, "targets", url.Values{"state": {"active"}}, &got); err != nil {
			return err
		}
		slices.SortFunc(got.ActiveTargets, byURL)
		if diff := cmp.Diff(want, got.ActiveTargets); diff != "" {
			return errors.New("its targets are not as expected:\n" + diff)
		}
		return nil
	})
}

// ask evaluates a query that returns a single value, and returns the value.
func ask(prometheus, query string) (string, error) {
	var data struct{ Result []struct{ Value [2]any } }
	if err := framework.AskPrometheus(prometheus, "query", url.Values{"query": {query}}, &data); err != nil {
		return "", err
	}
	if len(data.Result) != 1 {
		return "", fmt.Errorf("there are %d series", len(data.Result))
	}
	return fmt.Sprint(data.Result[0].Value[1]), nil
}

// rule is an alerting rule in the response of Prometheus' API.
type rule struct {
	Name, Health, LastError, State string
}

func rulesOf(prometheus string) (rules []rule, _ error) {
	var data struct{ Groups []struct{ Rules []rule } }
	err := framework.AskPrometheus(prometheus, "rules", nil, &data)
	for _, group := range data.Groups {
		rules = append(rules, group.Rules...)
	}
	return rules, err
}

// wantRules waits until Prometheus has evaluated all alerts of the PrometheusRule, and no others,
// without an error.
func (c neighborhood) wantRules(t *testing.T, prometheus string) {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(framework.Root(), "config", "monitoring", "prometheus_rule.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var ours struct {
		Spec struct {
			Groups []struct{ Rules []struct{ Alert string } }
		}
	}
	if err := yaml.Unmarshal(content, &ours); err != nil {
		t.Fatal(err)
	}
	var want []rule
	for _, group := range ours.Spec.Groups {
		for _, alert := range group.Rules {
			want = append(want, rule{Name: alert.Alert, Health: "ok"})
		}
	}
	byName := func(a, b rule) int { return strings.Compare(a.Name, b.Name) }
	slices.SortFunc(want, byName)
	framework.Eventually(t, "all alerts are evaluated", func() error {
		got, err := rulesOf(prometheus)
		if err != nil {
			return err
		}
		slices.SortFunc(got, byName)
		for i := range got {
			got[i].State = ""
		}
		if diff := cmp.Diff(want, got); diff != "" {
			return errors.New("its alerts are not as expected:\n" + diff)
		}
		return nil
	})
}

// wantAlert waits until an alert has the given state.
func wantAlert(t *testing.T, prometheus, name, state string) {
	t.Helper()
	framework.Eventually(t, name+" is "+state, func() error {
		rules, err := rulesOf(prometheus)
		if err != nil {
			return err
		}
		if !slices.ContainsFunc(rules, func(r rule) bool { return r.Name == name && r.State == state }) {
			return fmt.Errorf("the alerts are %v", rules)
		}
		return nil
	})
}

// wantRefused checks that a manager refuses to serve metrics to clients without a token, and to
// clients that may not read metrics.
func (c neighborhood) wantRefused(t *testing.T, address string) {
	t.Helper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "curious", Namespace: "default"}}
	c.Apply(t, account)
	other := strings.TrimSpace(c.MustKubectl(t, "", "create", "token", account.Name))
	// The certificate is self-signed.
	insecure := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	defer insecure.CloseIdleConnections()
	for authorization, want := range map[string]int{"": http.StatusUnauthorized, "Bearer " + other: http.StatusForbidden} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+address+"/metrics", nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Authorization", authorization)
		response, err := insecure.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		if response.StatusCode != want {
			t.Errorf("with the authorization %.10q the manager answers %s, want %d", authorization, response.Status, want)
		}
	}
}
