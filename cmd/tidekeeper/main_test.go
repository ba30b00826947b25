// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"tidekeeper.dev/tidekeeper/internal/manager"
)

// actAsTidekeeper is the environment variable that makes the test binary run as tidekeeper, so that
// the tests need no separate build.
const actAsTidekeeper = "TIDEKEEPER_TEST_MAIN"

func TestMain(m *testing.M) {
	if os.Getenv(actAsTidekeeper) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// TestWrongInput checks that invalid input results in a one-line error and exit code 1, without a
// usage message, log output or a stack trace.
func TestWrongInput(t *testing.T) {
	dir := t.TempDir()
	empty := filepath.Join(dir, "empty")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	unreachable := filepath.Join(dir, "unreachable")
	if err := os.WriteFile(unreachable, []byte(`apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "https://127.0.0.1:1"}}]
contexts: [{name: c, context: {cluster: c}}]
current-context: c
`), 0o600); err != nil {
		t.Fatal(err)
	}

	var controllers []string
	for _, c := range manager.NewOptions().Definitions() {
		controllers = append(controllers, c.Name)
	}
	for _, tc := range []struct {
		name string
		args []string
		env  []string
		want string // the line; a "…" at its end stands for the rest
	}{
		{"no kubeconfig there", []string{"--kubeconfig=/nope"}, nil, "Error: --kubeconfig=/nope: no such file"},
		{"a directory", []string{"--kubeconfig=" + dir}, nil, "Error: --kubeconfig=" + dir + ": is a directory, not a file"},
		{"an empty file", []string{"--kubeconfig=" + empty}, nil, "Error: --kubeconfig=" + empty + ": not a kubeconfig: it names no cluster"},
		{"$KUBECONFIG is wrong", nil, []string{"KUBECONFIG=/nope"}, "Error: KUBECONFIG=/nope: no such file"},
		{"no cluster at all", nil, nil, "Error: no cluster to talk to: …"},
		{"no server there", []string{"--kubeconfig=" + unreachable}, nil, "Error: cannot reach the API server at https://127.0.0.1:1: …"},
		{"out of range", []string{"--no-execute-share=101"}, nil, "Error: --no-execute-share=101: must be from 1 to 100"},
		{"not a number", []string{"--namespace-requests-burst=x"}, nil, `Error: --namespace-requests-burst="x": must be a whole number, from 100 to 10000000: see tidekeeper --help`},
		{"not a number with a fraction", []string{"--kube-api-qps=many"}, nil, `Error: --kube-api-qps="many": must be a number, from 0 to 100000: see tidekeeper --help`},
		{"no unit", []string{"--reconcile-timeout=5"}, nil, `Error: --reconcile-timeout="5": must be a duration with its unit, such as 30s or 5m, from 5s to 4m0s: see tidekeeper --help`},
		{"neither on nor off", []string{"--leader-elect=x"}, nil, `Error: --leader-elect="x": must be true or false: see tidekeeper --help`},
		{"unknown controller", []string{"--controllers=foo"}, nil, `Error: --controllers=foo: there is no controller "foo"; there are: ` + strings.Join(controllers, ", ")},
		{"unknown flag", []string{"--foo"}, nil, "Error: unknown flag: --foo: see tidekeeper --help"},
		{"an argument", []string{"start"}, nil, `Error: unknown argument "start": tidekeeper takes only flags, see tidekeeper --help`},
		{"not a namespace", []string{"--namespaces=shop,Shop"}, nil, `Error: --namespaces=shop,Shop: "Shop" is not the name of a namespace: …`},
		{"check without a namespace", []string{"check", "--kubeconfig=" + unreachable}, nil, "Error: --leader-elect-resource-namespace is empty: set it to the manager's namespace"},
		{"check, no server there", []string{"check", "--kubeconfig=" + unreachable, "--leader-elect-resource-namespace=x"}, nil, "Error: cannot reach the API server at https://127.0.0.1:1: …"},
		{"cleanup, no server there", []string{"cleanup", "--kubeconfig=" + unreachable}, nil, "Error: …"},
		{"cleanup with an argument", []string{"cleanup", "all"}, nil, `Error: unknown argument "all": tidekeeper cleanup takes only flags, see tidekeeper cleanup --help`},
		{"cleanup with an unknown flag", []string{"cleanup", "--now"}, nil, "Error: unknown flag: --now: see tidekeeper --help"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			stdout, stderr, code := tidekeeper(t, dir, tc.env, tc.args...)
			if code != 1 {
				t.Errorf("exit code: got %d, want 1", code)
			}
			if stdout != "" {
				t.Errorf("on standard output: %q", stdout)
			}
			line, rest, _ := strings.Cut(stderr, "\n")
			if rest != "" {
				t.Errorf("more than one line:\n%s", stderr)
			}
			prefix, cut := strings.CutSuffix(tc.want, "…")
			if (cut && !strings.HasPrefix(line, prefix)) || (!cut && line != tc.want) {
				t.Errorf("got:  %s\nwant: %s", line, tc.want)
			}
		})
	}
}

func TestEachWrongFlagHasItsLine(t *testing.T) {
	_, stderr, code := tidekeeper(t, t.TempDir(), nil, "--no-execute-share=0", "--log-format=xml")
	want := "Error: --no-execute-share=0: must be from 1 to 100\nError: --log-format=\"xml\": must be one of [\"json\" \"text\"]\n"
	if code != 1 || stderr != want {
		t.Errorf("got exit code %d and\n%swant 1 and\n%s", code, stderr, want)
	}
}

func TestVersion(t *testing.T) {
	stdout, stderr, code := tidekeeper(t, t.TempDir(), nil, "--version")
	if code != 0 || stderr != "" || !strings.HasPrefix(stdout, "tidekeeper ") || strings.Count(stdout, "\n") != 1 {
		t.Errorf("got exit code %d, %q and %q, want 0 and one line", code, stdout, stderr)
	}
}

func TestHelpShowsFlagsInGroups(t *testing.T) {
	stdout, stderr, code := tidekeeper(t, t.TempDir(), nil, "--help")
	if code != 0 || stderr != "" {
		t.Errorf("got exit code %d and %q, want 0 and nothing", code, stderr)
	}
	for _, want := range []string{"Cluster flags:", "Node pools flags:", "Leader election flags:", "--kubeconfig", "--status-interval",
		"restarts workloads on a schedule", "tidekeeper check ", "tidekeeper cleanup ", "pod-count "} {
		if !strings.Contains(stdout, want) {
			t.Errorf("--help does not say %q:\n%s", want, stdout)
		}
	}
}

// tidekeeper runs the program with the given environment and arguments. It can reach a cluster only
// through env and args.
func tidekeeper(t *testing.T, home string, env []string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], args...)
	cmd.Env = append([]string{actAsTidekeeper + "=1", "HOME=" + home}, env...)
	var out, errOut bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errOut
	err := cmd.Run()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return out.String(), errOut.String(), cmd.ProcessState.ExitCode()
}
