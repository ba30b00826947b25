// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package monitoring

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"tidekeeper.dev/tidekeeper/test/framework"
)

// rule is a Prometheus alerting rule.
type rule struct {
	Alert       string
	Expr        string
	Labels      map[string]string
	Annotations map[string]string
}

// rules returns the alerting rules of config/monitoring, keyed by alert name.
func rules(t *testing.T) map[string]rule {
	t.Helper()
	var object struct {
		Spec struct{ Groups []struct{ Rules []rule } }
	}
	readYAML(t, &object, "monitoring", "prometheus_rule.yaml")
	all := map[string]rule{}
	for _, group := range object.Spec.Groups {
		for _, r := range group.Rules {
			all[r.Alert] = r
		}
	}
	return all
}

// TestAlertsAreComplete checks that each alert has a severity, a summary, an existing runbook, and
// a test case.
func TestAlertsAreComplete(t *testing.T) {
	all := rules(t)
	for name, r := range all {
		if r.Labels["severity"] != "critical" && r.Labels["severity"] != "warning" {
			t.Errorf("%s has the severity %q", name, r.Labels["severity"])
		}
		if r.Annotations["summary"] == "" {
			t.Errorf("%s has no summary", name)
		}
		page, ok := strings.CutPrefix(r.Annotations["runbook_url"], "https://tidekeeper.dev/docs/runbooks/")
		text, err := os.ReadFile(filepath.Join(framework.Root(), "docs", "runbooks", page))
		switch {
		case !ok || page != name+".md":
			t.Errorf("the runbook of %s is %q", name, r.Annotations["runbook_url"])
		case err != nil:
			t.Error(err)
		case !strings.HasPrefix(string(text), "# "+name+"\n"):
			t.Errorf("the runbook of %s has another heading", name)
		}
		if c := alertCases[name]; c.fires == nil || len(c.quiet) == 0 {
			t.Errorf("%s has no case in which it fires, or none in which it does not", name)
		}
	}
	for name := range alertCases {
		if _, ok := all[name]; !ok {
			t.Errorf("there is no alert %s", name)
		}
	}
	pages, err := filepath.Glob(filepath.Join(framework.Root(), "docs", "runbooks", "Tidekeeper*.md"))
	if err != nil {
		t.Fatal(err)
	}
	if len(pages) != len(all) {
		t.Errorf("%d runbooks for %d alerts", len(pages), len(all))
	}
}

// TestAlertsFire checks the alerting rules with promtool. Each alert must fire for the series of
// its test case, and must not fire for the similar quiet series.
func TestAlertsFire(t *testing.T) {
	file := rulesFile(t)
	promtool(t, "check", "rules", "--lint=all", "--lint-fatal", file)

	type expected struct {
		Labels      map[string]string `json:"exp_labels"`
		Annotations map[string]string `json:"exp_annotations"`
	}
	type check struct {
		Time   string     `json:"eval_time"`
		Name   string     `json:"alertname"`
		Alerts []expected `json:"exp_alerts"`
	}
	type input struct {
		Series string `json:"series"`
		Values string `json:"values"`
	}
	type story struct {
		Name     string  `json:"name"`
		Interval string  `json:"interval"`
		Input    []input `json:"input_series"`
		Checks   []check `json:"alert_rule_test"`
	}
	inputs := func(s series) (all []input) {
		for name, values := range s {
			all = append(all, input{name, values})
		}
		slices.SortFunc(all, func(a, b input) int { return cmp.Compare(a.Series, b.Series) })
		return all
	}
	var stories []story
	for name, r := range rules(t) {
		c := alertCases[name]
		e := expected{
			Labels:      map[string]string{"severity": r.Labels["severity"]},
			Annotations: map[string]string{"summary": c.summary, "runbook_url": r.Annotations["runbook_url"]},
		}
		for key, value := range c.labels {
			e.Labels[key] = value
		}
		stories = append(stories, story{name + " fires", "1m", inputs(c.fires), []check{{c.after, name, []expected{e}}}})
		for _, quiet := range c.quiet {
			s := story{Name: name + " is quiet", Interval: "1m", Input: inputs(quiet)}
			for _, at := range []string{"5m", "10m", "20m", "30m", "40m", "50m", "60m"} {
				s.Checks = append(s.Checks, check{at, name, []expected{}})
			}
			stories = append(stories, s)
		}
	}
	promtool(t, "test", "rules", writeYAML(t, filepath.Dir(file), "tests.yaml", map[string]any{
		"rule_files": []string{file}, "evaluation_interval": "1m", "tests": stories,
	}))
}
