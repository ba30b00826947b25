// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"fmt"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"tidekeeper.dev/tidekeeper/internal/restart/query"
)

// TestChartHasTheQueries checks that the queries to run before restarts reach the manager in a file
// that it accepts, and that a change of the queries changes the pod template.
func TestChartHasTheQueries(t *testing.T) {
	const deployment = "Deployment " + namespace + "/tidekeeper"
	render := func(args ...string) (config *query.Config, pod string, arguments, mounts []string) {
		t.Helper()
		all := renderChart(t, append([]string{
			"--set=restartQueries.prometheus.url=https://prometheus.monitoring:9090",
			`--set-json=restartQueries.queries=[{"name": "alerts", "query": "ALERTS{namespace=$namespace}  # it's\n"}]`,
		}, args...)...)
		text, _, _ := unstructured.NestedString(all["ConfigMap "+namespace+"/tidekeeper-restart-queries"], "data", "queries.yaml")
		config, err := query.Parse([]byte(text))
		if err != nil {
			t.Fatalf("%v:\n%s", err, text)
		}
		pod, _, _ = unstructured.NestedString(all[deployment], "spec", "template", "metadata", "annotations", "tidekeeper.dev/restart-queries")
		containers, _, _ := unstructured.NestedSlice(all[deployment], "spec", "template", "spec", "containers")
		arguments, _, _ = unstructured.NestedStringSlice(containers[0].(map[string]any), "args")
		volumes, _, _ := unstructured.NestedSlice(all[deployment], "spec", "template", "spec", "volumes")
		mounted, _, _ := unstructured.NestedSlice(containers[0].(map[string]any), "volumeMounts")
		for i := range mounted {
			if mounted[i].(map[string]any)["name"] != volumes[i].(map[string]any)["name"] {
				t.Errorf("the volumes are %v, and the mounts %v", volumes, mounted)
			}
			mounts = append(mounts, fmt.Sprint(mounted[i].(map[string]any)["mountPath"]))
		}
		return config, pod, arguments, mounts
	}
	config, pod, arguments, mounts := render()
	if config.Prometheus.URL != "https://prometheus.monitoring:9090" || len(config.Queries) != 1 || config.Queries[0].Query != "ALERTS{namespace=$namespace}  # it's\n" {
		t.Errorf("the file has %+v", config)
	}
	if !slices.Contains(arguments, "--restart-queries=/restart-queries/queries.yaml") || !slices.Equal(mounts, []string{"/restart-queries"}) {
		t.Errorf("the manager has the arguments %q and the mounts %q", arguments, mounts)
	}
	_, again, _, _ := render()
	_, other, _, mounts := render("--set=restartQueries.prometheus.timeoutSeconds=7", "--set=restartQueries.secret=token", "--set=metrics.certificateSecret=web")
	if pod == "" || pod != again || pod == other {
		t.Errorf("the annotation of the pods is %q, then %q, and with another file %q", pod, again, other)
	}
	if !slices.Equal(mounts, []string{"/certificate", "/restart-queries", "/restart-queries-secret"}) {
		t.Errorf("with a secret and a certificate the mounts are %q", mounts)
	}
	if all := renderChart(t); len(all["ConfigMap "+namespace+"/tidekeeper-restart-queries"]) > 0 {
		t.Error("without queries there is a file")
	}
}
