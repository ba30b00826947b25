// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"tidekeeper.dev/tidekeeper/sandbox/client"
)

// TestReplayHostNetwork checks that findings made with --host-network can be replayed without
// flags: in the network of this machine, with one operator at a time, and with the flags with which
// they were made. The operators start only in this network, and one of them listens on a fixed
// port.
func TestReplayHostNetwork(t *testing.T) {
	t.Parallel()
	outside, err := os.Readlink("/proc/self/ns/net")
	if err != nil {
		t.Fatal(err)
	}
	address, release, err := client.FreeAddress()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = release() })
	for _, tc := range []struct {
		name          string
		explore       []string
		program       []string
		mistake       []string
		says, survive string
	}{
		{
			name:    "explore",
			explore: []string{"explore", "--workload", workloadFile(t, orderWorkload), "--quiet", "1500ms", "--patience", "10s", "--jobs", "2", "--only", "Conflict at step 1"},
			program: []string{shop(t), outside, "--listen", address}, mistake: []string{"--mistake", "panic"},
			says: "panic: ", survive: "the operator survives this fault",
		},
		{
			name:    "fuzz",
			explore: []string{"fuzz", "--install", "testdata/stall-crd.yaml", "--object", "testdata/stall.yaml", "--nodes", "0", "--quiet", "1s", "--patience", "10s", "--only", "spec.items: empty"},
			program: []string{stall(t), outside}, mistake: []string{"--mistakes", "panic"},
			says: "index out of range", survive: "the operator survives this edit",
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			program := append([]string{"--", "sh", "-c", `test "$(readlink /proc/self/ns/net)" = "$1" && shift && exec "$0" "$@"`}, tc.program...)
			expect := func(code int, says string, args ...string) {
				t.Helper()
				if r := play(t, args...); r.code != code || !strings.Contains(r.stdout, says) || strings.Contains(r.stdout, "another problem") {
					t.Fatalf("%s: exit code %d\n%s%s, want %q", args[0], r.code, r.stdout, r.stderr, says)
				}
			}
			expect(2, tc.says, slices.Concat(tc.explore, []string{"--host-network", "--dir", dir}, program, tc.mistake)...)
			findings, err := filepath.Glob(filepath.Join(dir, "finding-*.yaml"))
			if err != nil || len(findings) != 1 {
				t.Fatalf("the findings are %q, %v", findings, err)
			}
			expect(2, tc.says, "replay", findings[0])
			expect(0, tc.survive, slices.Concat([]string{"replay", "--patience", "30s", findings[0]}, program)...)
		})
	}
}
