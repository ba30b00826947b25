// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
)

// shopBinary builds the shop operator once, and returns its path.
var shopBinary = sync.OnceValues(func() (string, error) {
	path := filepath.Join(testDir, "shop")
	build := exec.Command("go", "build", "-trimpath", "-o", path, "./shop")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the shop: %w\n%s", err, out)
	}
	return path, nil
})

func shop(t *testing.T) string {
	t.Helper()
	path, err := shopBinary()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

const shopWorkload = "testdata/shop.yaml"

// longShopWorkload returns the path of a copy of shopWorkload that begins with an additional step,
// on which no other step depends.
func longShopWorkload(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(shopWorkload)
	if err != nil {
		t.Fatal(err)
	}
	return workloadFile(t, strings.Replace(string(text), "steps:\n", "steps:\n- run: kubectl create namespace other\n", 1))
}

func workloadFile(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "workload.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// TestExploreFindsMistakes checks that explore finds each mistake of the shop operator with the
// faults that reveal it. Each finding must occur again in a replay, and no longer occur with a
// correct operator.
func TestExploreFindsMistakes(t *testing.T) {
	for _, tc := range []struct {
		mistake, only string
		// says lists phrases that the report must contain.
		says []string
	}{
		{
			mistake: "done-first", only: "CrashAfter at step 2, update configmaps",
			says: []string{"secrets default/receipt-bread: it is missing", "in step 1 (an order is made)", "its workload: 1 of 2 steps were left out", "killed when it is done and not answered", "can it happen: A process can be killed at any moment"},
		},
		{mistake: "panic", only: "Conflict at step 1", says: []string{"operator failed", "panic: "}},
		{mistake: "restless", only: "ServerError at step 1", says: []string{"not at rest"}},
		{mistake: "impatient", only: "Overtake at step 3", says: []string{"not at rest", "update configmaps default/bread: refused 60 times in"}},
	} {
		t.Run(tc.mistake, func(t *testing.T) {
			t.Parallel()
			dir, workload := t.TempDir(), shopWorkload
			if tc.mistake == "done-first" {
				workload = longShopWorkload(t)
			}
			r := play(t, "explore", "--workload", workload, "--quiet", "1500ms", "--patience", "5s", "--dir", dir, "--jobs", "1",
				"--only", tc.only, "--", shop(t), "--mistake", tc.mistake)
			if r.code != 2 {
				t.Fatalf("exit code %d\n%s%s", r.code, r.stdout, r.stderr)
			}
			for _, text := range tc.says {
				if !strings.Contains(r.stdout, text) {
					t.Errorf("the report lacks %q:\n%s", text, r.stdout)
				}
			}
			for _, file := range []string{"report.html", "junit.xml"} {
				text, err := os.ReadFile(filepath.Join(dir, file))
				if err != nil || !strings.Contains(string(text), tc.only) {
					t.Errorf("%s: %v\n%s", file, err, text)
				}
			}
			findings, err := filepath.Glob(filepath.Join(dir, "finding-*.yaml"))
			if err != nil || len(findings) == 0 {
				t.Fatalf("there is no file that replays it: %v", err)
			}
			if tc.mistake != "done-first" {
				return
			}
			t.Run("again", func(t *testing.T) {
				t.Parallel()
				out, err := goTestOf(t, findings[0])
				if err == nil || !strings.Contains(out, "--- FAIL: TestFinding_") || !strings.Contains(out, "the operator has this mistake, or another:") || !strings.Contains(out, "it is missing") {
					t.Errorf("%v\n%s", err, out)
				}
			})
			t.Run("fixed", func(t *testing.T) {
				t.Parallel()
				if out, err := goTestOf(t, findings[0], shop(t)); err != nil {
					t.Errorf("%v\n%s", err, out)
				}
			})
			if merged := command(t, "explore", "report", dir); merged.code != 2 || !strings.Contains(merged.stdout, "it is missing") {
				t.Errorf("report: exit code %d\n%s%s", merged.code, merged.stdout, merged.stderr)
			}
		})
	}
}

// TestExploreWithoutMistakes checks that an operator without mistakes survives all faults, and that
// a second explore in the same directory does not repeat them.
func TestExploreWithoutMistakes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	args := []string{"explore", "--workload", shopWorkload, "--dir", dir, "--quiet", "1500ms", "--only", "CrashAfter at step 1", "--only", "Restart at step 2", "--only", "Freeze at step 1", "--only", "Long at step 3", "--only", "CrashEvent at step 1", "--only", "DropEvent at step 3", "--only", "KillAPIServer at step 1", "--only", "KillEtcd at step 3", "--hold", "1s", "--jobs", "2", "--timelines", "--", shop(t), "--dated"}
	r := play(t, args...)
	if r.code != 0 || !strings.Contains(r.stdout, "Found: 0.") {
		t.Fatalf("exit code %d\n%s%s", r.code, r.stdout, r.stderr)
	}
	if strings.Count(r.stderr, ": ok\n") < 10 {
		t.Errorf("too little was played:\n%s", r.stderr)
	}
	for _, text := range []string{"What this result means:", " took effect, and were judged\n", "    configmaps: ", "    secrets: ", "the control plane's own"} {
		if !strings.Contains(r.stdout, text) {
			t.Errorf("the report lacks %q:\n%s", text, r.stdout)
		}
	}
	timelines, err := filepath.Glob(filepath.Join(dir, "timelines", "*.txt"))
	if err != nil || len(timelines) < 10 {
		t.Errorf("there are timelines of %d survived faults, %v", len(timelines), err)
	}
	for _, file := range timelines {
		if text, err := os.ReadFile(file); err != nil || !strings.Contains(string(text), "\nsurvived: in step ") || !strings.Contains(string(text), "operator  create secrets default/receipt-bread: 201") {
			t.Errorf("%s has no fault or nothing of the operator: %v\n%s", file, err, text)
		}
	}
	again := play(t, args...)
	if again.code != 0 || strings.Contains(again.stderr, ": ok\n") || !strings.Contains(again.stderr, "and are not played again: begin from the start with --fresh") {
		t.Errorf("exit code %d, and it was played again:\n%s%s", again.code, again.stdout, again.stderr)
	}
	other := play(t, append(slices.Clone(args), "--mistake=panic")...)
	if other.code != 1 || !strings.Contains(other.stderr, "has the results of another workload or operator") {
		t.Errorf("exit code %d\n%s", other.code, other.stderr)
	}
}

// TestExploreAnotherProgram checks that explore repeats all faults after the operator's program has
// changed, beginning with the faults that led to findings.
func TestExploreAnotherProgram(t *testing.T) {
	t.Parallel()
	dir, program := t.TempDir(), filepath.Join(t.TempDir(), "operator")
	explore := func(mistake string) result {
		t.Helper()
		if err := os.WriteFile(program, fmt.Appendf(nil, "#!/bin/sh\nexec %s %s\n", shop(t), mistake), 0o700); err != nil {
			t.Fatal(err)
		}
		args := []string{"explore", "--workload", shopWorkload, "--dir", dir, "--quiet", "1500ms", "--patience", "5s", "--shrink=false", "--jobs", "1"}
		return play(t, append(args, "--only", "CrashAfter at step 1, update configmaps", "--only", "Restart at step 2", "--", program)...)
	}
	if r := explore("--mistake done-first"); r.code != 2 || strings.Count(r.stderr, ": ok\n") != 1 || !strings.Contains(r.stdout, "Found: 1.") {
		t.Fatalf("with a mistake: exit code %d\n%s%s", r.code, r.stdout, r.stderr)
	}
	r := explore("")
	if r.code != 0 || strings.Count(r.stderr, ": ok\n") != 2 || !strings.Contains(r.stdout, "Found: 0.") {
		t.Errorf("without it: exit code %d\n%s%s", r.code, r.stdout, r.stderr)
	}
	for _, text := range []string{": the operator's program. All faults are played again", "first those with which something was found before: 1."} {
		if !strings.Contains(r.stderr, text) {
			t.Errorf("it does not say %q:\n%s", text, r.stderr)
		}
	}
}

// TestExploreStaleStarts checks that a restart with stale lists takes effect if the lists differ
// from the current state, even if they only show the state at the beginning of the same step.
func TestExploreStaleStarts(t *testing.T) {
	t.Parallel()
	r := play(t, "explore", "--workload", shopWorkload, "--dir", t.TempDir(), "--quiet", "1500ms", "--jobs", "1",
		"--only", "StaleStart at step 1, as of", "--only", "StaleStart at step 3, as of step 3", "--only", "StaleStart at step 3, as of step 1", "--",
		"env", "KUBE_FEATURE_WatchListClient=false", shop(t))
	if r.code != 0 || !strings.Contains(r.stdout, "Played 3 of 3 faults") || !strings.Contains(r.stdout, "of which 3 were reached") {
		t.Errorf("exit code %d\n%s%s", r.code, r.stdout, r.stderr)
	}
}

// TestExploreUndisturbed checks that explore reports a failure in a run without faults, and runs
// without faults that end in different states.
func TestExploreUndisturbed(t *testing.T) {
	t.Parallel()
	// Each run has a kubeconfig of its own. The operator is started twice in the first run.
	const script = `grep -qxF "$KUBECONFIG" "$0" || echo "$KUBECONFIG" >> "$0"
n=$(grep -nxF "$KUBECONFIG" "$0" | cut -d: -f1)
test "$n" = 2 && echo "WARNING: DATA RACE"
TURN=$(((n - 1) % 2)) exec "$1" --mistake turns`
	r := play(t, "explore", "--workload", shopWorkload, "--quiet", "1500ms", "--dir", t.TempDir(), "--jobs", "1", "--only", "Restart at step 1", "--",
		"sh", "-c", script, filepath.Join(t.TempDir(), "starts"), shop(t))
	for text, in := range map[string]string{
		"operator failed: WARNING: DATA RACE": r.stdout,
		"different ends (step 1):":            r.stdout,
		"secrets default/receipt-bread: data.turn is MA== in one undisturbed run, and MQ== in another":               r.stdout,
		"Not judged, as it differs between undisturbed runs: secrets default/receipt-bread data.turn (MA== or MQ==)": r.stderr,
	} {
		if !strings.Contains(in, text) {
			t.Errorf("it does not say %q", text)
		}
	}
	if r.code != 2 || t.Failed() {
		t.Errorf("exit code %d\n%s%s", r.code, r.stdout, r.stderr)
	}
}

// TestExploreUndisturbedTooShort checks that explore repeats an undisturbed (fault-free) run with a
// longer quiet time if the run ended before a slow operator was done. Otherwise, explore would not
// judge the objects that are missing from that run.
func TestExploreUndisturbedTooShort(t *testing.T) {
	t.Parallel()
	const script = `n=$(cat "$0" || echo 0); echo $((n+1)) > "$0"
exec "$1" --mistake done-first --pause $(test "$n" = 0 && echo 1m || echo 0s)`
	text, err := os.ReadFile(shopWorkload)
	if err != nil {
		t.Fatal(err)
	}
	workload, _, _ := strings.Cut(string(text), "- wait:")
	r := play(t, "explore", "--workload", workloadFile(t, workload), "--quiet", "1500ms", "--patience", "5s", "--dir", t.TempDir(), "--jobs", "1", "--shrink=false",
		"--only", "CrashAfter at step 1, update configmaps", "--", "sh", "-c", script, filepath.Join(t.TempDir(), "starts"), shop(t))
	if r.code != 2 || !strings.Contains(r.stderr, "learning again, with a quiet time of 3s") || !strings.Contains(r.stdout, "secrets default/receipt-bread: it is missing") {
		t.Errorf("exit code %d\n%s%s", r.code, r.stdout, r.stderr)
	}
}

// TestExploreInput checks that each input error is reported in a single line, before anything is
// started if possible.
func TestExploreInput(t *testing.T) {
	workload := func(text string) string { return workloadFile(t, text) }
	good := workload("nodes: 0\nsteps: [{run: 'true'}]")
	for _, tc := range []struct {
		name string
		args []string
		says string
	}{
		{"no program", []string{"--workload", good}, "requires a program, after --"},
		{"no workload", []string{"--", "true"}, "--workload is missing: name the file with the steps of users"},
		{"a workload that is not there", []string{"--workload", "missing.yaml", "--", "true"}, "--workload: open missing.yaml: no such file or directory"},
		{"a workload without steps", []string{"--workload", workload("nodes: 1"), "--", "true"}, "steps: there are none"},
		{"a workload that is not YAML", []string{"--workload", workload("steps: [{"), "--", "true"}, "yaml: line 1: did not find expected"},
		{"a step with two verbs", []string{"--workload", workload("steps: [{run: 'true', delete: {resource: a, name: b}}]"), "--", "true"}, "steps[0]: has 2 of apply, patch, delete, wait and run: want exactly one"},
		{"an invariant that does not compile", []string{"--workload", workload("steps: [{run: 'true'}]\ninvariants: [{name: a, resource: pods, rule: 'object.'}]"), "--", "true"}, `invariants[0] (a): "object." is not an expression in CEL: Syntax error`},
		{"a program that is not there", []string{"--workload", good, "--", "./missing"}, "the operator: "},
		{"a wrong shard", []string{"--workload", good, "--shard", "5/4", "--", "true"}, `--shard "5/4": want I/N`},
		{"no jobs", []string{"--workload", good, "--jobs", "0", "--", "true"}, "--jobs 0: at least 1 is needed"},
		{"no time to settle", []string{"--workload", good, "--quiet", "5s", "--settle", "5s", "--", "true"}, "--settle 5s: it must be more than --quiet 5s, or no step ever comes to rest"},
		{"no patience", []string{"--workload", good, "--patience", "0s", "--", "true"}, "--patience 0s: it must be more than 0"},
		{"a wrong account", []string{"--workload", good, "--service-account", "shop", "--", "true"}, `--service-account "shop": want NAMESPACE/NAME`},
		{"a wrong expression", []string{"--workload", good, "--fail-on-log", "(", "--", "true"}, "--fail-on-log: "},
		{"a report of nothing", []string{"REPORT"}, "has no results of sandbox explore or sandbox fuzz"},
		{"a replay of something else", []string{"REPLAY", good}, "is not a finding of sandbox explore"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			dir := t.TempDir()
			args := append([]string{"explore", "--dir", dir}, tc.args...)
			switch tc.args[0] {
			case "REPORT":
				args = []string{"explore", "report", dir}
			case "REPLAY":
				args = []string{"replay", tc.args[1]}
			}
			r := command(t, args...)
			if r.code != 1 || !strings.Contains(r.stderr, tc.says) || strings.Count(strings.TrimSpace(r.stderr), "\n") > 0 {
				t.Errorf("exit code %d\n%s%s, want %q", r.code, r.stdout, r.stderr, tc.says)
			}
		})
	}
}

func TestExploreOperatorsThatDoNotWork(t *testing.T) {
	here, err := filepath.Abs("testdata")
	if err != nil {
		t.Fatal(err)
	}
	manifests := strings.NewReplacer("HOOK", filepath.Join(here, "webhook.yaml"), "API", filepath.Join(here, "apiservice.yaml"))
	const settle = "30s" // It exceeds the time that a working operator needs to start on a machine that stalls.
	for _, tc := range []struct{ name, workload, operator, says string }{
		{"it ends", "nodes: 0\nsteps: [{run: 'true'}]", "false", "the operator exited (exit status 1) in a run without faults"},
		{"it watches nothing", "nodes: 0\nsteps: [{run: 'true'}]", "sleep 1000", "the operator has not opened a watch in " + settle},
		{"it does not do what is waited for", "nodes: 0\nsteps: [{wait: {resource: configmaps, namespace: default, name: never, for: 'true', timeout: 1s}}]", "SHOP", "wait for configmaps default/never: true: not after 1s (it is not there) in a run without faults"},
		{"a step that fails", "nodes: 0\nsteps: [{run: 'echo oh; exit 3'}]", "SHOP", "step 1 (echo oh; exit 3): exit status 3: oh"},
		{"an account that is not there", "nodes: 0\nserviceAccount: shop/operator\nsteps: [{run: 'true'}]", "SHOP", "there is no ServiceAccount shop/operator"},
		{"an account without rights", "nodes: 0\nserviceAccount: default/default\nsteps: [{run: 'true'}]", "SHOP", "it may not: list configmaps"},
		{"a script that does not end", "nodes: 0\nsteps: [{run: 'sleep 1000'}]", "SHOP", "step 1 (sleep 1000): it has not ended in " + settle + " (--settle)"},
		{"an invariant of no resource", "nodes: 0\nsteps: [{run: 'true'}]\ninvariants: [{name: a, resource: boats, rule: 'true'}]", "SHOP", `the invariant "a": the API server has no resource "boats"`},
		{"a webhook of a Service", "nodes: 0\ninstall: [HOOK]\nsteps: [{run: 'exit 3'}]", "SHOP", "warning: a webhook of validatingwebhookconfigurations/shop calls the Service default/shop, which no one serves here: leave it out of what is installed\n"},
		{"an API that nothing serves", "nodes: 0\ninstall: [API]\nsteps: [{run: 'exit 3'}]", "SHOP", "warning: external.metrics.k8s.io/v1beta1: an APIService is installed for it, which nothing serves here, so its objects are not looked at\n"},
		{"a wait for no resource", "nodes: 0\nsteps: [{wait: {resource: boats, name: a, for: 'true'}}]", "SHOP", `the API server has no resource "boats"`},
		{"a resource that is not there", "nodes: 0\nsteps: [{delete: {resource: boats, name: a}}]", "SHOP", `the API server has no resource "boats"`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			args := []string{"explore", "--dir", t.TempDir(), "--workload", workloadFile(t, manifests.Replace(tc.workload)), "--quiet", "1s", "--settle", settle, "--jobs", "1", "--"}
			if tc.operator == "SHOP" {
				args = append(args, shop(t))
			} else {
				args = append(args, strings.Fields(tc.operator)...)
			}
			if r := command(t, args...); r.code != 1 || !strings.Contains(r.stderr, tc.says) {
				t.Errorf("exit code %d\n%s%s, want %q", r.code, r.stdout, r.stderr, tc.says)
			}
		})
	}
}

// TestExploreInAPod checks that a program that only supports in-cluster configuration connects to
// the sandbox, even after a restart, with the permissions of a ServiceAccount or of the
// administrator. Other processes must not see the mounted ServiceAccount files.
func TestExploreInAPod(t *testing.T) {
	const files = "/var/run/secrets/kubernetes.io/serviceaccount"
	for _, account := range []string{"default/shop", "none"} {
		t.Run(account, func(t *testing.T) {
			t.Parallel()
			rights, err := filepath.Abs("testdata/shop-rights.yaml")
			if err != nil {
				t.Fatal(err)
			}
			text, err := os.ReadFile(shopWorkload)
			if err != nil {
				t.Fatal(err)
			}
			dir := t.TempDir()
			r := play(t, "explore", "--workload", workloadFile(t, fmt.Sprintf("install: [%s]\n%s", rights, text)), "--quiet", "1500ms", "--dir", dir, "--jobs", "1",
				"--service-account", account, "--only", "CrashAfter at step 1, update configmaps", "--",
				"env", "-u", "KUBECONFIG", "sh", "-c", `test "$(cat `+files+`/namespace)" = default && exec "$0"`, shop(t))
			if r.code != 0 || !strings.Contains(r.stdout, "of which 1 were reached") || !strings.Contains(r.stdout, "Found: 0.") {
				t.Errorf("exit code %d\n%s%s", r.code, r.stdout, r.stderr)
			}
			if _, err := os.Stat(files); !os.IsNotExist(err) {
				t.Errorf("the files of a ServiceAccount are on the machine: %v", err)
			}
			if left, err := filepath.Glob(filepath.Join(dir, "*", "*.pod")); err != nil || len(left) > 0 {
				t.Errorf("tokens are left in %v, %v", left, err)
			}
		})
	}
}

// TestExploreCommandsThatWait checks that a step's command may wait for an action of the operator
// during a fault, and that the wait ends once the fault is over.
func TestExploreCommandsThatWait(t *testing.T) {
	const workload = `nodes: 0
steps:
- run: |
    kubectl create configmap bread --from-literal=item=bread --from-literal=state=new
    kubectl label configmap bread shop=order
    kubectl wait configmap bread --for=jsonpath='{.data.state}'=done --timeout=60s
- run: kubectl delete configmap bread
`
	t.Parallel()
	r := play(t, "explore", "--workload", workloadFile(t, workload), "--quiet", "1500ms", "--dir", t.TempDir(), "--jobs", "1",
		"--only", "CrashAfter at step 1", "--only", "Freeze at step 1, configmaps", "--", shop(t))
	if r.code != 0 || !strings.Contains(r.stdout, "Found: 0.") || strings.Contains(r.stderr, "error: ") {
		t.Errorf("exit code %d\n%s%s", r.code, r.stdout, r.stderr)
	}
	// No fault outlasts the first step, because the command of that step waits for the operator.
	for fault, came := range map[string]string{
		"CrashAfter at step 1, create secrets": "ok", "CrashAfter at step 1, update configmaps": "ok",
		"Freeze at step 1, configmaps (": "ok", "Freeze at step 1, configmaps, until step 2": "not reached",
	} {
		if !regexp.MustCompile(regexp.QuoteMeta(fault) + `.*: ` + came + `\n`).MatchString(r.stderr) {
			t.Errorf("%s: want %s:\n%s", fault, came, r.stderr)
		}
	}
}
