// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tidekeeper.dev/tidekeeper/sandbox/client"
)

// TestExploreWebhooks checks that the API server reaches an operator's webhooks on a port that the
// operator chooses itself, even when several operators run in parallel. The operator runs with the
// environment of its Deployment, with its Pod's name as hostname, and in its own network namespace.
// With hostNetwork, only one operator runs at a time, because it may need a fixed port.
func TestExploreWebhooks(t *testing.T) {
	outside, err := os.Readlink("/proc/self/ns/net")
	if err != nil {
		t.Fatal(err)
	}
	address, release, err := client.FreeAddress()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = release() })
	var installed []string
	for _, name := range []string{"testdata/shop-rights.yaml", "testdata/shop-webhook.yaml"} {
		path, err := filepath.Abs(name)
		if err != nil {
			t.Fatal(err)
		}
		installed = append(installed, path)
	}
	text, err := os.ReadFile(shopWorkload)
	if err != nil {
		t.Fatal(err)
	}
	served := strings.NewReplacer("nodes: 0", "nodes: 1", `object.data.state == "done"`, `object.data.state == "done" && object.data.greeting == "good morning"`).Replace(string(text))
	for _, tc := range []struct {
		name, workload, test string
		args                 []string
	}{
		{name: "a network of its own", workload: fmt.Sprintf("install: [%s]\n%s", strings.Join(installed, ", "), served), test: `"$(readlink /proc/self/ns/net)" != "$1"`, args: []string{"--webhook"}},
		{name: "the network of the machine", workload: "hostNetwork: true\n" + strings.Replace(string(text), "nodes: 0", "nodes: 1", 1), test: `"$(readlink /proc/self/ns/net)" = "$1"`, args: []string{"--listen", address}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			r := play(t, append([]string{
				"explore", "--workload", workloadFile(t, tc.workload), "--quiet", "1500ms", "--dir", t.TempDir(), "--jobs", "2", "--only", "CrashAfter at step 1", "--only", "Long at step 1", "--hold", "1s", "--",
				"sh", "-c", `test ` + tc.test + ` -a "$(cat /proc/sys/kernel/hostname)" = "$HOSTNAME" && shift && exec "$0" "$@"`, shop(t), outside,
			}, tc.args...)...)
			if r.code != 0 || !strings.Contains(r.stdout, "of which 3 were reached") || !strings.Contains(r.stdout, "Found: 0.") || strings.Contains(r.stderr, "warning") {
				t.Errorf("exit code %d\n%s%s", r.code, r.stdout, r.stderr)
			}
		})
	}
}

// TestExploreRights checks that an operator has the permissions of its Deployment's ServiceAccount
// and no others.
func TestExploreRights(t *testing.T) {
	t.Parallel()
	rights, err := filepath.Abs("testdata/shop-rights.yaml")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(shopWorkload)
	if err != nil {
		t.Fatal(err)
	}
	r := play(t, "explore", "--workload", workloadFile(t, fmt.Sprintf("install: [%s]\n%s", rights, text)), "--quiet", "1500ms", "--dir", t.TempDir(), "--jobs", "1",
		"--only", "CrashAfter at step 1, update configmaps", "--", shop(t))
	if r.code != 0 || !strings.Contains(r.stdout, "Found: 0.") || !strings.Contains(r.stderr, "The operator has the rights of the ServiceAccount default/shop, as deployment/default/shop has.") {
		t.Errorf("exit code %d\n%s%s", r.code, r.stdout, r.stderr)
	}
	if strings.Contains(r.stderr, "may not") || !strings.Contains(r.stderr, ": ok\n") {
		t.Errorf("it was not played as it should:\n%s", r.stderr)
	}
}
