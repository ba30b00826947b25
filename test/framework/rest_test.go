// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"strings"
	"testing"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

func TestAtRest(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ text, want string }{
		"at rest":                 {"workqueue_depth{name=\"a\",controller=\"a\"} 0\ncontroller_runtime_active_workers{controller=\"a\"} 0\n", ""},
		"queued":                  {"workqueue_depth{name=\"a\",controller=\"a\"} 2\ncontroller_runtime_active_workers{controller=\"a\"} 0\n", "workqueue_depth of a is 2"},
		"a busy one":              {"workqueue_depth{name=\"a\"} 0\ncontroller_runtime_active_workers{controller=\"b\"} 1\nworkqueue_longest_running_processor_seconds{name=\"b\"} 12\n", "controller_runtime_active_workers of b is 1; the longest reconcile has been running for 12 s"},
		"no such ones":            {"up 1\n", "it has no metrics of queues and workers"},
		"a standby":               {"leader_election_master_status{name=\"tidekeeper\"} 0\n", ""},
		"a leader without queues": {"leader_election_master_status{name=\"tidekeeper\"} 1\n", "it has no metrics of queues and workers"},
		"a busy standby":          {"leader_election_master_status 0\nworkqueue_depth{name=\"a\"} 2\ncontroller_runtime_active_workers{controller=\"a\"} 0\n", "workqueue_depth of a is 2"},
	} {
		parser := expfmt.NewTextParser(model.UTF8Validation)
		metrics, err := parser.TextToMetricFamilies(strings.NewReader("# TYPE workqueue_depth gauge\n# TYPE controller_runtime_active_workers gauge\n# TYPE workqueue_longest_running_processor_seconds gauge\n# TYPE leader_election_master_status gauge\n" + test.text))
		if err != nil {
			t.Fatal(err)
		}
		got := Metrics(metrics).AtRest()
		if (got == nil) != (test.want == "") || got != nil && !strings.HasPrefix(got.Error(), test.want) {
			t.Errorf("%s: %v, want %q", name, got, test.want)
		}
	}
}

// recorder collects a test's errors instead of failing it.
type recorder struct {
	testing.TB
	errors []string
}

func (t *recorder) Helper()                        {}
func (t *recorder) Errorf(format string, _ ...any) { t.errors = append(t.errors, format) }

// TestDefectsAreReported checks that a test fails if its process's log reports a defect, even if
// the process continues.
func TestDefectsAreReported(t *testing.T) {
	t.Parallel()
	for log, want := range map[string]bool{
		"all is well\n": false,
		"all is well\n==================\nWARNING: DATA RACE\nWrite at 0x00c0\n":                                                                               true,
		`E1126 15:43 verify.go:152] "The cache and client-go decode an object differently; the cache uses client-go's" object="shop/a" field=".spec.priority"`: true,
	} {
		inner := &recorder{TB: t}
		assertNoDefect(inner, "manager", log)
		if (len(inner.errors) > 0) != want {
			t.Errorf("after %q: reported %q", log, inner.errors)
		}
	}
}
