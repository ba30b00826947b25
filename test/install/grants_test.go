// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tidekeeper.dev/tidekeeper/internal/controller"
	"tidekeeper.dev/tidekeeper/internal/manager"
	"tidekeeper.dev/tidekeeper/test/framework"
)

// TestChartGrantsWhatIsChosen checks that the chart grants only the rights that the enabled
// controllers need, and only in the selected namespaces.
func TestChartGrantsWhatIsChosen(t *testing.T) {
	everywhere := func(roles ...string) []string {
		for i := range roles {
			roles[i] = "ClusterRoleBinding /tidekeeper-" + roles[i]
		}
		return roles
	}
	in := func(namespace string, roles ...string) []string {
		for i := range roles {
			roles[i] = "RoleBinding " + namespace + "/tidekeeper-" + roles[i]
		}
		return roles
	}
	all := which(func(controller.Definition) bool { return true })
	off := which(isOff)
	on := which(func(c controller.Definition) bool { return !c.OffByDefault })
	others := which(func(c controller.Definition) bool {
		return !c.OffByDefault && c.Name != "nodepool" && c.Name != "pod-startup"
	})
	ofNamespaces := which(func(c controller.Definition) bool { return !c.OffByDefault && c.Namespaced })
	ofCluster := which(func(c controller.Definition) bool { return !c.OffByDefault && !c.Namespaced })
	with := func(names ...string) []string { return append([]string{"events"}, names...) }
	for _, tt := range []struct {
		name string
		set  string
		want [][]string
	}{
		{"by default", "", [][]string{everywhere(with(on...)...)}},
		{"all", "controllers={*," + strings.Join(off, ",") + "},optionalWatches={configmaps,secrets}", [][]string{everywhere(with(append(all, "watch-configmaps", "watch-secrets")...)...)}},
		{"watches of a controller that does not run", "controllers={nodepool},optionalWatches={configmaps}", [][]string{everywhere("events", "nodepool")}},
		{"ConfigMaps, in a namespace", "controllers={scheduled-restart},optionalWatches={configmaps},namespaces={a}", [][]string{in("a", "watch-configmaps", "events", "scheduled-restart")}},
		{"one", "controllers={nodepool}", [][]string{everywhere("events", "nodepool")}},
		{"not that one", "controllers={*,-nodepool,-pod-startup}", [][]string{everywhere(with(others...)...)}},
		{"the first counts", "controllers={-nodepool,nodepool,scheduled-restart}", [][]string{everywhere("events", "scheduled-restart")}},
		{"in namespaces", "namespaces={a,b}", [][]string{
			everywhere(ofCluster...), in("a", with(ofNamespaces...)...), in("b", with(ofNamespaces...)...), in("default", "events"),
		}},
		{"nothing of the cluster", "controllers={scheduled-restart},namespaces={a}", [][]string{in("a", "events", "scheduled-restart")}},
		{"targets of other kinds", "controllers={scheduled-restart},scaleTargets[0].group=example.com,scaleTargets[0].resource=databases", [][]string{everywhere("events", "scale-targets", "scheduled-restart")}},
		{"targets of other kinds, in a namespace", "controllers={scheduled-restart},namespaces={a},scaleTargets[0].group=example.com,scaleTargets[0].resource=databases", [][]string{
			in("a", "events", "scale-targets", "scheduled-restart"),
		}},
		{"targets of other kinds, without restarts", "controllers={nodepool},scaleTargets[0].group=example.com,scaleTargets[0].resource=databases", [][]string{everywhere("events", "nodepool")}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var got []string
			for key := range renderChart(t, "--no-hooks", "--set="+tt.set) {
				if strings.Contains(key, "Binding ") && !strings.Contains(key, "Policy") {
					got = append(got, key)
				}
			}
			want := slices.Concat(tt.want...)
			want = append(want, "RoleBinding "+namespace+"/tidekeeper", "ClusterRoleBinding /tidekeeper-metrics-auth")
			if _, cleans := renderChart(t, "--no-hooks", "--set="+tt.set)["ClusterRoleBinding /tidekeeper-cleanup"]; cleans {
				want = append(want, "ClusterRoleBinding /tidekeeper-cleanup")
			}
			slices.Sort(got)
			slices.Sort(want)
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("bindings (-want +got):\n%s", d)
			}
		})
	}
}

// TestChartGrantsTheScaleOfTargets checks that the chart grants the same right to read scale
// subresources as the example in the documentation.
func TestChartGrantsTheScaleOfTargets(t *testing.T) {
	const key = "ClusterRole /tidekeeper-scale-targets"
	rules := renderChart(t, `--set-json=scaleTargets=[{"group":"example.com","resource":"databases"},{"group":"","resource":"replicationcontrollers"}]`)[key]["rules"]
	rule := func(group, resource string) map[string]any {
		return map[string]any{"apiGroups": []any{group}, "resources": []any{resource}, "verbs": []any{"get"}}
	}
	if d := cmp.Diff([]any{rule("example.com", "databases/scale"), rule("", "replicationcontrollers/scale")}, rules); d != "" {
		t.Errorf("rules (-want +got):\n%s", d)
	}
	text, err := os.ReadFile(filepath.Join(framework.Root(), "docs", "concepts", "eviction.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, documented, _ := strings.Cut(string(text), "With kustomize, add these objects")
	_, documented, _ = strings.Cut(documented, "```yaml\n")
	documented, _, _ = strings.Cut(documented, "```")
	one := renderChart(t, `--set-json=scaleTargets=[{"group":"example.com","resource":"databases"}]`)
	for key, want := range parse(t, documented) {
		if d := cmp.Diff(want, one[key]); d != "" {
			t.Errorf("%s (-documented +chart):\n%s", key, d)
		}
	}
}

// TestChartKnowsAllControllers checks that the chart's values cover every controller that has a
// role.
func TestChartKnowsAllControllers(t *testing.T) {
	all := renderChart(t, "--no-hooks")
	bound := renderChart(t, "--no-hooks", "--set=controllers={*,"+strings.Join(which(isOff), ",")+"},optionalWatches={configmaps,secrets}")
	text, err := os.ReadFile(filepath.Join(framework.Root(), "config", "rbac", "role.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for key := range parse(t, string(text)) {
		role, ok := strings.CutPrefix(key, "ClusterRole /")
		if _, binds := bound["ClusterRoleBinding /"+role]; ok && !binds {
			t.Errorf("%s is never bound", role)
		}
		if _, there := all[key]; !there {
			t.Errorf("there is no %s", key)
		}
	}
}

// which returns the names of the controllers for which `has` returns true, so that the tests also cover
// new controllers.
func which(has func(controller.Definition) bool) (names []string) {
	for _, c := range manager.NewOptions().Definitions() {
		if has(c) {
			names = append(names, c.Name)
		}
	}
	return names
}

// isOff reports whether a controller is off by default.
func isOff(c controller.Definition) bool { return c.OffByDefault }
