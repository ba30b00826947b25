// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"strings"
	"testing"

	"tidekeeper.dev/tidekeeper/test/framework"
)

// TestErrors checks that an error results in one line on stderr and an exit code.
func TestErrors(t *testing.T) {
	noRights := cluster.UserKubeconfig(t, "dev")
	for _, tc := range []struct {
		name, kubeconfig, args string
		code                   int
		want                   string
	}{
		{"no server", "", "restarts --server http://127.0.0.1:1", 4, "error: the cluster at http://127.0.0.1:1 cannot be reached: connection refused"},
		{"no kubeconfig", "/nowhere", "restarts", 4, "error: KUBECONFIG=/nowhere: no such file"},
		{"no such kubeconfig", "", "restarts --kubeconfig /nowhere", 1, "error: kubeconfig: stat /nowhere: no such file or directory"},
		{"no such context", "", "restarts --context other", 1, `error: context "other" does not exist`},
		{"no rights", noRights, "restarts -n default", 5, `error: scheduledrestarts.tidekeeper.dev is forbidden: User "dev" cannot list resource "scheduledrestarts"`},
		{"no rights to all namespaces", noRights, "restarts next -A", 5, `error: scheduledrestarts.tidekeeper.dev is forbidden: User "dev"`},
		{"no such object", "", "restarts history web -n default", 3, `error: there is no ScheduledRestart "web" in the namespace "default"`},
		{"no such object to restart", "", "restarts now web", 3, `error: there is no ScheduledRestart "web" in the namespace "default"`},
		{"no name", "", "restarts now", 1, "error: name restarts by NAME or TYPE/NAME, or select them by -l or by --all: one of the three"},
		{"no such command", "", "restart hisory", 1, `error: unknown command "hisory" for "kubectl tide restarts": did you mean history?`},
		{"no such flag", "", "restarts --colour", 1, "error: unknown flag: --colour: see kubectl tide restarts --help"},
		{"no such format", "", "restarts -o xml", 1, "error: -o xml: write one of json, yaml, name, wide, custom-columns=…, jsonpath=… or go-template=…"},
		{"no such format of a history", "", "restarts history web -o wide", 1, "error: -o wide: write one of json, yaml"},
		{"no selector", "", "restarts -l a=b=c", 1, "error: --selector: "},
		{"no duration", "", "restarts --older-than soon", 1, `error: --older-than="soon": write a duration such as 30m, 24h or 7d`},
		{"too far", "", "restarts next --for 52w", 1, `error: --for="52w": at most 31d`},
		{"no number", "", "restarts gates web --max-concurrent-restarts x", 1, `error: --max-concurrent-restarts="x": must be a whole number, from 1 to 100000: see kubectl tide restarts gates --help`},
		{"no number of ticks", "", "restarts explain @daily --count x", 1, `error: --count="x": must be a whole number, from 1 to 1000: see kubectl tide restarts explain --help`},
		{"no number of pods", "", "pods slow --top 99999999999999999999", 1, `error: --top="99999999999999999999": is out of range: must be a whole number: see kubectl tide pods slow --help`},
		{"no port", "", "dashboard --port x", 1, `error: --port="x": must be a whole number, from 0 to 65535: see kubectl tide dashboard --help`},
		{"no log level", "", "pools -v=x", 1, `error: --v="x": must be a whole number: see kubectl tide pools --help`},
		{"too much at once", "", "restarts forecast --restart-namespace-share 101", 1, "error: --restart-namespace-share=101: must be from 1 to 100"},
		{"no schedule", "/nowhere", "restarts explain 60 * * * *", 1, `error: schedule "60 * * * *": minute "60": "60" is not in the range 0 to 59`},
		{"no such maintenance", "", "maintenance describe reboot", 3, `error: there is no NodeMaintenance "reboot"`},
		{"no such maintenance, but a command", "", "maintenance forcast", 1, `error: unknown command "forcast" for "kubectl tide maintenance": did you mean forecast?`},
		{"no maintenance", "", "maintenance suspend", 1, "error: name maintenances, or select them by -l or by --all: one of the three"},
		{"no node", "", "maintenance done", 1, "error: kubectl tide maintenance done requires at least one NODE: see kubectl tide maintenance done --help"},
		{"too long for a node", "", "maintenance forecast --per-node 8d", 1, `error: --per-node="8d": at most 7d`},
		{"no dry run", "", "maintenance done a --dry-run=client", 1, "error: --dry-run=client: write none or server"},
		{"another kind", "", "maintenance suspend pod/a", 1, `error: "pod/a" is not a NodeMaintenance: write NAME or nodemaintenance/NAME`},
		{"no time zone", "/nowhere", "restarts explain @daily --time-zone CEST", 1, `error: unknown time zone "CEST": write a name from the IANA database`},
		{"no time", "/nowhere", "restarts explain @daily --from noon", 1, `error: "noon" is not a time: write 2027-03-26`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := command{kubeconfig: tc.kubeconfig, args: strings.Fields(tc.args)}.run(t)
			if r.code != tc.code || r.stdout != "" || !strings.HasPrefix(r.stderr, tc.want) || strings.Count(r.stderr, "\n") != 1 {
				t.Errorf("exit code %d, want %d; stdout %q\nstderr %s  want %s", r.code, tc.code, r.stdout, r.stderr, tc.want)
			}
		})
	}
	if r := (command{args: []string{"restarts", "-n", "empty"}}).run(t); r.code != 0 || r.stdout != "" || r.stderr != "There are no scheduled restarts in the namespace empty.\n" {
		t.Errorf("nothing there: %+v", r)
	}
}

// TestCRDsMissing checks that commands distinguish a cluster without Tidekeeper's CRDs from a
// cluster without objects.
func TestCRDsMissing(t *testing.T) {
	other := framework.StartEmpty(t)
	for args, kind := range map[string]string{
		"restarts": "ScheduledRestart", "restarts -A": "ScheduledRestart", "check": "NodePool", "restarts next": "ScheduledRestart", "restarts forecast": "ScheduledRestart",
		"restarts history web": "ScheduledRestart", "restarts now web": "ScheduledRestart",
		"pools": "NodePool", "pools describe worker": "NodePool", "pools -w": "NodePool", "restarts -w": "ScheduledRestart",
		"maintenance": "NodeMaintenance", "maintenance describe reboot": "NodeMaintenance", "maintenance forecast": "NodeMaintenance", "maintenance suspend reboot": "NodeMaintenance",
		"pools plan --delete worker": "NodePool", "pools plan -f " + manifest(t, planned): "NodePool",
	} {
		framework.Eventually(t, "kubectl tide "+args, func() error {
			r := command{kubeconfig: other.Kubeconfig, args: strings.Fields(args)}.run(t)
			return diff(result{code: 6, stderr: "error: the cluster does not know the kind " + kind + ": install Tidekeeper (docs/tasks/install-with-helm.md), or only its kinds: kubectl apply -k config/crd, in a checkout\n"}, r)
		})
	}
	// Pods are a built-in kind, so the command works.
	r := command{kubeconfig: other.Kubeconfig, args: []string{"pods", "slow"}}.run(t)
	if err := diff(result{stderr: "There are no pods in the namespace default.\n"}, r); err != nil {
		t.Errorf("kubectl tide pods slow %v", err)
	}
}

func TestHelpAndVersion(t *testing.T) {
	for _, args := range []string{"--help", "pools --help", "pools describe --help", "pools plan --help", "restarts --help", "restarts history --help", "restarts next --help", "restarts forecast --help", "restarts now --help",
		"maintenance --help", "maintenance describe --help", "maintenance forecast --help", "maintenance suspend --help", "maintenance resume --help", "maintenance done --help",
		"restarts suspend --help", "restarts resume --help", "restarts explain --help", "migrate --help", "completion --help",
		"pods --help", "pods watch --help", "pods timeline --help", "pods slow --help"} {
		out := tide(t, strings.Fields(args)...)
		for _, want := range []string{"Usage:\n  kubectl tide", "Examples:\n  kubectl tide "} {
			if !strings.Contains(out, want) {
				t.Errorf("kubectl tide %s has no %q:\n%s", args, want, out)
			}
		}
	}
	if out := tide(t, "--version"); !strings.HasPrefix(out, "kubectl tide ") || strings.Count(out, "\n") != 1 {
		t.Errorf("--version prints %q", out)
	}
}

// TestCompletion checks that kubectl's shell completion offers the names of existing objects.
func TestCompletion(t *testing.T) {
	aNamespace(t, "complete")
	aRestart(t, "complete", "web", "0 3 * * *", nil)
	eventuallyCompletes(t, func(got string) bool { return got == "web\t0 3 * * * of Deployment web\n:4\n" }, "restarts", "history", "-n", "complete", "")
	eventuallyCompletes(t, func(got string) bool { return strings.Contains(got, "complete\n") }, "restarts", "-n", "compl")
	eventuallyCompletes(t, func(got string) bool { return strings.HasPrefix(got, "explain\t") }, "restarts", "expl")
	if got := tide(t, "completion"); got != "#!/bin/sh\nexec kubectl tide __complete \"$@\"\n" {
		t.Errorf("kubectl tide completion prints %q", got)
	}
	if got := tide(t, "completion", "bash"); !strings.Contains(got, "kubectl-tide") {
		t.Errorf("kubectl tide completion bash prints %q", got)
	}
}
