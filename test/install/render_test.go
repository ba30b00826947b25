// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	"tidekeeper.dev/tidekeeper/test/framework"
)

// objects maps the key of each rendered object, which consists of its kind, namespace and name, to
// its content.
type objects map[string]map[string]any

func parse(t *testing.T, text string) objects {
	t.Helper()
	all := objects{}
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewBufferString(text), 4096)
	for {
		o := unstructured.Unstructured{}
		if err := decoder.Decode(&o.Object); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		if len(o.Object) == 0 {
			continue
		}
		// Remove the labels by which Helm and kustomize recognize their objects.
		labels := o.GetLabels()
		maps.DeleteFunc(labels, func(key, _ string) bool {
			return strings.HasPrefix(key, "app.kubernetes.io/") || key == "helm.sh/chart"
		})
		if len(labels) == 0 {
			labels = nil
		}
		o.SetLabels(labels)
		key := strings.Trim(fmt.Sprintf("%s %s/%s", o.GetKind(), o.GetNamespace(), o.GetName()), "/")
		if _, twice := all[key]; twice {
			t.Errorf("%s is rendered twice", key)
		}
		all[key] = o.Object
	}
}

func renderChart(t *testing.T, args ...string) objects {
	t.Helper()
	return parse(t, mustHelm(t, append([]string{"template", release, framework.Chart(), "--namespace", namespace}, args...)...))
}

func renderKustomize(t *testing.T, name string) objects {
	t.Helper()
	resources, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), filepath.Join(framework.Root(), "config", name))
	if err != nil {
		t.Fatal(err)
	}
	text, err := resources.AsYaml()
	if err != nil {
		t.Fatal(err)
	}
	return parse(t, string(text))
}

// TestChartAndKustomizeInstallTheSame checks that the chart with default values installs the same
// objects as kustomize, except that Helm creates the namespace itself, and that the chart also has
// uninstall hooks.
func TestChartAndKustomizeInstallTheSame(t *testing.T) {
	chart, kustomize := renderChart(t, "--no-hooks", "--set=image.tag=latest"), renderKustomize(t, "default")
	delete(kustomize, "Namespace /"+namespace)
	for _, key := range []string{"ServiceAccount " + namespace + "/tidekeeper-cleanup", "ClusterRole /tidekeeper-cleanup", "ClusterRoleBinding /tidekeeper-cleanup"} {
		if _, ok := chart[key]; !ok {
			t.Errorf("the chart has no %s", key)
		}
		delete(chart, key)
	}
	if len(kustomize) < 20 {
		t.Fatalf("only %d objects: %q", len(kustomize), slices.Sorted(maps.Keys(kustomize)))
	}
	if d := cmp.Diff(slices.Sorted(maps.Keys(kustomize)), slices.Sorted(maps.Keys(chart))); d != "" {
		t.Fatalf("what is installed (-kustomize +chart):\n%s", d)
	}
	for key := range kustomize {
		if d := cmp.Diff(kustomize[key], chart[key]); d != "" {
			t.Errorf("%s (-kustomize +chart):\n%s", key, d)
		}
	}
}

// TestChartHasTheMonitoring checks that each monitoring value of the chart adds the corresponding
// objects of config/monitoring.
func TestChartHasTheMonitoring(t *testing.T) {
	all, want := renderChart(t), renderKustomize(t, "monitoring")
	reader := namespace + "/tidekeeper-metrics-reader"
	for set, keys := range map[string][]string{
		"monitoring.serviceMonitor=true": {
			"ServiceMonitor " + namespace + "/tidekeeper", "ServiceAccount " + reader, "Secret " + reader, "ClusterRoleBinding /tidekeeper-metrics-reader",
		},
		"monitoring.alerts=true":     {"PrometheusRule " + namespace + "/tidekeeper"},
		"monitoring.dashboards=true": {"ConfigMap " + namespace + "/tidekeeper-dashboards"},
	} {
		more := renderChart(t, "--set="+set)
		for _, key := range keys {
			if d := cmp.Diff(want[key], more[key]); d != "" || want[key] == nil {
				t.Errorf("%s: %s (-kustomize +chart):\n%s", set, key, d)
			}
		}
		if len(more) != len(all)+len(keys) {
			t.Errorf("%s: %d additional objects, want %d", set, len(more)-len(all), len(keys))
		}
	}
	if len(want) != 6 {
		t.Errorf("objects in config/monitoring that no value adds: %q", slices.Sorted(maps.Keys(want)))
	}
}

// TestChartScrapesSafely checks that the ServiceMonitor verifies the manager's certificate if
// possible, and never sends Prometheus' own token.
func TestChartScrapesSafely(t *testing.T) {
	const key = "ServiceMonitor " + namespace + "/tidekeeper"
	for sets, want := range map[string]map[string]any{
		"monitoring.serviceMonitor=true": {"insecureSkipVerify": true},
		"monitoring.serviceMonitor=true,metrics.certificateSecret=web": {
			"ca":         map[string]any{"secret": map[string]any{"name": "web", "key": "ca.crt"}},
			"serverName": "tidekeeper-metrics." + namespace + ".svc",
		},
		"monitoring.serviceMonitor=true,metrics.certificateSecret=web,monitoring.tlsConfig.serverName=tide": {"serverName": "tide"},
	} {
		endpoints, _, _ := unstructured.NestedSlice(renderChart(t, "--set="+sets)[key], "spec", "endpoints")
		if len(endpoints) != 1 {
			t.Fatalf("%s: the endpoints are %v", sets, endpoints)
		}
		endpoint := endpoints[0].(map[string]any)
		if d := cmp.Diff(want, endpoint["tlsConfig"]); d != "" {
			t.Errorf("%s: tlsConfig (-want +got):\n%s", sets, d)
		}
		if d := cmp.Diff(map[string]any{"credentials": map[string]any{"name": "tidekeeper-metrics-reader", "key": "token"}}, endpoint["authorization"]); d != "" {
			t.Errorf("%s: authorization (-want +got):\n%s", sets, d)
		}
		if _, file := endpoint["bearerTokenFile"]; file {
			t.Errorf("%s: it sends Prometheus' own token", sets)
		}
	}
}

// TestChartQuotesNames checks that the chart quotes names that YAML would otherwise parse as
// numbers or booleans.
func TestChartQuotesNames(t *testing.T) {
	all := parse(t, mustHelm(t, "template", "on", framework.Chart(), "--namespace=123", `--set-json=namespaces=["no","456"]`, "--set-string=priorityClassName=1e3",
		"--set-string=metrics.certificateSecret=off,image.pullSecrets[0].name=7", "--set=monitoring.serviceMonitor=true,monitoring.alerts=true,monitoring.dashboards=true"))
	names := []string{"name", "namespace", "priorityClassName", "secretName", "serviceAccountName", "app.kubernetes.io/instance"}
	var look func(what string, value any)
	look = func(what string, value any) {
		switch value := value.(type) {
		case map[string]any:
			for key, inside := range value {
				if _, text := inside.(string); slices.Contains(names, key) && !text {
					if _, schema := inside.(map[string]any); !schema { // Skip a schema property that happens to be called name.
						t.Errorf("%s.%s is %v, a %T", what, key, inside, inside)
					}
				}
				look(what+"."+key, inside)
			}
		case []any:
			for _, inside := range value {
				look(what, inside)
			}
		}
	}
	for key, o := range all {
		look(key, o)
		if meta := o["metadata"].(map[string]any); meta["namespace"] != nil && !slices.Contains([]any{"123", "no", "456", "default"}, meta["namespace"]) {
			t.Errorf("%s is in the namespace %v", key, meta["namespace"])
		}
	}
	for _, key := range []string{"Deployment 123/tidekeeper", "RoleBinding no/tidekeeper-events", "RoleBinding 456/tidekeeper-events", "ServiceMonitor 123/tidekeeper"} {
		if all[key] == nil {
			t.Errorf("there is no %s", key)
		}
	}
}

// TestChartGivesTimeToStop checks that the pod's termination grace period is long enough for the
// manager to stop.
func TestChartGivesTimeToStop(t *testing.T) {
	for set, want := range map[string]string{
		"replicas=2":                   "30 ",
		"gracefulShutdownSeconds=20":   "30 ",
		"gracefulShutdownSeconds=90":   "100 --graceful-shutdown-timeout=90s",
		"gracefulShutdownSeconds=1":    "11 --graceful-shutdown-timeout=1s",
		"gracefulShutdownSeconds=3600": "3610 --graceful-shutdown-timeout=3600s",
	} {
		pod := renderChart(t, "--set="+set)["Deployment "+namespace+"/tidekeeper"]["spec"].(map[string]any)["template"].(map[string]any)["spec"].(map[string]any)
		var flag string
		for _, arg := range pod["containers"].([]any)[0].(map[string]any)["args"].([]any) {
			if strings.HasPrefix(arg.(string), "--graceful-") {
				flag = arg.(string)
			}
		}
		if got := fmt.Sprint(pod["terminationGracePeriodSeconds"], " ", flag); got != want {
			t.Errorf("%s: %q, want %q", set, got, want)
		}
	}
}

// TestChartSwitches checks that switching off a feature of the chart removes the feature's own
// objects, and nothing else.
func TestChartSwitches(t *testing.T) {
	all := renderChart(t)
	for set, want := range map[string][]string{
		"policies.enabled=false":            {"ValidatingAdmissionPolicy ", "ValidatingAdmissionPolicyBinding "},
		"crds.install=false":                {"CustomResourceDefinition ", "Job " + namespace + "/tidekeeper-cleanup", "ServiceAccount " + namespace + "/tidekeeper-cleanup", "ClusterRole /tidekeeper-cleanup", "ClusterRoleBinding /tidekeeper-cleanup"},
		"crds.keep=true":                    {"Job " + namespace + "/tidekeeper-cleanup", "ServiceAccount " + namespace + "/tidekeeper-cleanup", "ClusterRole /tidekeeper-cleanup", "ClusterRoleBinding /tidekeeper-cleanup"},
		"networkPolicy.enabled=false":       {"NetworkPolicy "},
		"podDisruptionBudget.enabled=false": {"PodDisruptionBudget "},
		"metrics.enabled=false":             {"Service ", "ClusterRole /tidekeeper-metrics-auth", "ClusterRoleBinding /tidekeeper-metrics-auth", "ClusterRole /tidekeeper-metrics-reader"},
	} {
		t.Run(set, func(t *testing.T) {
			rest := renderChart(t, "--set="+set)
			for key := range all {
				_, stays := rest[key]
				goes := slices.ContainsFunc(want, func(prefix string) bool {
					return strings.HasPrefix(key, prefix) && (key == prefix || strings.HasSuffix(prefix, " "))
				})
				if stays == goes {
					t.Errorf("%s: stays %t", key, stays)
				}
			}
			for key := range rest {
				if _, ok := all[key]; !ok {
					t.Errorf("%s is new", key)
				}
			}
		})
	}
	for key, o := range renderChart(t, "--set=crds.keep=true") {
		policy, _, _ := unstructured.NestedString(o, "metadata", "annotations", "helm.sh/resource-policy")
		if is := strings.HasPrefix(key, "CustomResourceDefinition "); is != (policy == "keep") {
			t.Errorf("%s has the resource policy %q", key, policy)
		}
	}
}

// TestChartRefusesWrongValues checks that invalid values are rejected before anything is installed,
// with an error that names the value.
func TestChartRefusesWrongValues(t *testing.T) {
	for set, want := range map[string]string{
		"replica=3":                          "additional properties 'replica' not allowed",
		"scaleTargets[0].resource=databases": "missing property 'group'",
		"scaleTargets[0].group=*,scaleTargets[0].resource=x":          "at '/scaleTargets/0/group'",
		"scaleTargets[0].group=a.io,scaleTargets[0].resource=x/scale": "at '/scaleTargets/0/resource'",
		"replicas=two":                                                 "at '/replicas': got string, want integer",
		"image.pullPolicy=Sometimes":                                   "at '/image/pullPolicy'",
		"image.digest=latest":                                          "at '/image/digest'",
		"controllers={node-pool}":                                      "at '/controllers/0'",
		"controllers=nodepool":                                         "at '/controllers': got string, want array",
		"namespaces={Shop}":                                            "at '/namespaces/0'",
		"settings.kubeconfig=x":                                        "at '/settings': additional properties 'kubeconfig' not allowed",
		"settings.graceful-shutdown-timeout=1m":                        "at '/settings': additional properties 'graceful-shutdown-timeout' not allowed",
		"settings.staus-interval=5s":                                   "at '/settings': additional properties 'staus-interval' not allowed",
		"settings.status-interval=5":                                   "at '/settings/status-interval': got number, want string",
		"gracefulShutdownSeconds=0":                                    "at '/gracefulShutdownSeconds'",
		"monitoring.serviceMonitor=true,metrics.enabled=false":         "with metrics.enabled=false there is nothing to scrape",
		"monitoring.serviceMonitor=true,settings.metrics-secure=false": "which settings.metrics-secure=false turns off",
		"monitoring.alerts=yes":                                        "at '/monitoring/alerts': got string, want boolean",
		"monitoring.labels=x":                                          "at '/monitoring/labels': got string, want object",
		"crds.enabled=true":                                            "at '/crds': additional properties 'enabled' not allowed",
		"networkPolicy.egressPorts={x}":                                "at '/networkPolicy/egressPorts/0'",
	} {
		t.Run(set, func(t *testing.T) {
			out, err := framework.Helm(t, "template", release, framework.Chart(), "--set="+set)
			if err == nil {
				t.Fatal("it is accepted")
			}
			if !strings.Contains(out, want) {
				t.Errorf("refused with\n%s\nwant it to say\n%s", out, want)
			}
		})
	}
}
