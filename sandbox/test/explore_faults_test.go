// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"
)

// orderWorkload is a workload that only creates an order. It is short, but every kind of fault can
// take effect in it.
const orderWorkload = `nodes: 0
steps:
- name: an order is made
  apply: |
    apiVersion: v1
    kind: ConfigMap
    metadata: {name: bread, namespace: default, labels: {shop: order}}
    data: {item: bread, state: new}
`

// occasions maps suffixes of fault names to the kinds of faults that the test injects there. A
// suffix names a write by the shop operator, the watch events of orders, a restart, or a start with
// stale lists.
var occasions = map[string][]string{
	", create secrets default/receipt-bread #1": {
		"CrashBefore", "CrashAfter", "CrashTwice", "LoseAnswer", "Timeout", "Invalid", "Throttle", "ServerError", "Unavailable", "Refuse", "Late", "CutOff", "KillAPIServer", "KillEtcd",
	},
	", update configmaps default/bread #1": {"Conflict", "Overtake", "Pause"},
	", configmaps": {
		"Freeze", "DropEvents", "FreezeLong", "ExpireWatch", "CrashEvent", "DropEvent", "LateEvent", "CutWatch", "DuplicateEvent",
	},
	"":               {"Restart"},
	", as of step 1": {"StaleStart"},
}

// askWorkload is the workload with an application for the faults that hit requests to it.
var askWorkload = fmt.Sprintf(bakeryWorkload, "{pods: app=bakery, port: 8080, servicePort: 80, program: %s --sell}", `- name: an order is made
  apply: |
    apiVersion: v1
    kind: ConfigMap
    metadata: {name: bread, namespace: default, labels: {shop: order}}
    data: {item: bread, state: new}
  wait: {resource: configmaps, namespace: default, name: bread, for: 'object.data.state == "done"'}
`)

// asks maps suffixes of fault names to the kinds of faults that the test injects there, in askWorkload.
var asks = map[string][]string{
	", GET app=bakery:8080 /price #1":   {"CrashBefore", "CrashAfter", "LoseAnswer", "Refuse", "Late", "NoAnswer", "LoseState", "FallBack"},
	", GET app=bakery:8080 /account #2": {"OldAnswer"},
}

// TestEachFaultIsReached checks that each fault listed in docs/faults.md takes effect on an
// operator in a sandbox, and that a correct operator survives it.
func TestEachFaultIsReached(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(filepath.Join("..", "docs", "faults.md"))
	if err != nil {
		t.Fatal(err)
	}
	// Another test checks that the table in faults.md is current.
	var kinds []string
	for _, row := range regexp.MustCompile("(?m)^\\| `([A-Z][A-Za-z]+)` \\|").FindAllSubmatch(page, -1) {
		kinds = append(kinds, string(row[1]))
	}
	played := map[string]bool{}
	for _, of := range []map[string][]string{occasions, asks} {
		for _, some := range of {
			for _, kind := range some {
				played[kind] = true
			}
		}
	}
	if got := slices.Sorted(maps.Keys(played)); !slices.Equal(got, slices.Sorted(slices.Values(kinds))) {
		t.Errorf("there are occasions for %v, and the table has %v", got, kinds)
	}
	for _, tc := range []struct {
		name, workload string
		step           int
		occasions      map[string][]string
		args           []string
	}{
		{"requests to the API server", orderWorkload, 1, occasions, nil},
		{"requests to an application", fmt.Sprintf(askWorkload, shop(t)), 2, asks, []string{"--bakery", "http://bakery.default"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			var names []string
			for at, of := range tc.occasions {
				for _, kind := range of {
					names = append(names, fmt.Sprintf("%s at step %d%s", kind, tc.step, at))
				}
			}
			// A fault may miss its effect on a machine that stalls, so inject it a second time.
			for range 2 {
				if names = playFaults(t, tc.workload, names, tc.args...); len(names) == 0 {
					return
				}
			}
			t.Errorf("these are not reached: %q", names)
		})
	}
}

// playFaults injects the named faults into the shop operator, which has the given arguments, and returns
// the names of the faults that did not take effect.
func playFaults(t *testing.T, workload string, names []string, arguments ...string) (unreached []string) {
	t.Helper()
	args := []string{"explore", "--workload", workloadFile(t, workload), "--dir", t.TempDir(), "--quiet", "1500ms", "--hold", "1s", "--jobs", "3"}
	for _, name := range names {
		args = append(args, "--only", name)
	}
	r := play(t, slices.Concat(args, []string{"--", "env", "KUBE_FEATURE_WatchListClient=false", shop(t), "--elect"}, arguments)...)
	for _, name := range names {
		came := regexp.MustCompile(regexp.QuoteMeta(name) + ` \([^()]*\): (.*)\n`).FindStringSubmatch(r.stderr)
		switch {
		case came == nil:
			t.Errorf("%s is not played", name)
		case came[1] == "not reached":
			unreached = append(unreached, name)
		case came[1] != "ok":
			t.Errorf("%s: %s", name, came[1])
		}
	}
	if t.Failed() {
		t.Logf("exit code %d\n%s%s", r.code, r.stdout, r.stderr)
	}
	return unreached
}
