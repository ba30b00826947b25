// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package test

import (
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
	var names []string
	for at, of := range occasions {
		for _, kind := range of {
			names = append(names, kind+" at step 1"+at)
			if !slices.Contains(kinds, kind) {
				t.Errorf("there is no fault %s in the table", kind)
			}
		}
	}
	if len(names) != len(kinds) {
		t.Errorf("there are occasions for %d faults, and the table has %d: %v", len(names), len(kinds), kinds)
	}
	// A fault may miss its effect on a machine that stalls, so inject it a second time.
	for range 2 {
		if names = playFaults(t, names); len(names) == 0 {
			return
		}
	}
	t.Errorf("these are not reached: %q", names)
}

// playFaults injects the named faults into the shop operator, and returns the names of the faults
// that did not take effect.
func playFaults(t *testing.T, names []string) (unreached []string) {
	t.Helper()
	args := []string{"explore", "--workload", workloadFile(t, orderWorkload), "--dir", t.TempDir(), "--quiet", "1500ms", "--hold", "1s", "--jobs", "3"}
	for _, name := range names {
		args = append(args, "--only", name)
	}
	r := play(t, append(args, "--", "env", "KUBE_FEATURE_WatchListClient=false", shop(t), "--elect")...)
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
