// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package monitoring

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"tidekeeper.dev/tidekeeper/test/framework"
)

func readYAML(t *testing.T, into any, path ...string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(append([]string{framework.Root(), "config"}, path...)...))
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(text, into); err != nil {
		t.Fatal(err)
	}
}

// rulesFile writes the alerting rules to a file in the format of Prometheus and promtool, and
// returns its path.
func rulesFile(t *testing.T) string {
	t.Helper()
	var object struct{ Spec any }
	readYAML(t, &object, "monitoring", "prometheus_rule.yaml")
	return writeYAML(t, t.TempDir(), "rules.yaml", object.Spec)
}

func writeYAML(t *testing.T, dir, name string, content any) string {
	t.Helper()
	text, err := yaml.Marshal(content)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func promtool(t *testing.T, args ...string) {
	t.Helper()
	path, err := framework.Binary("PROMTOOL_BIN", "promtool")
	if err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), path, args...).CombinedOutput(); err != nil {
		t.Errorf("promtool %s: %v\n%s", strings.Join(args[:2], " "), err, out)
	}
}
