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

// stallBinary builds the stall operator once, and returns its path.
var stallBinary = sync.OnceValues(func() (string, error) { return buildHere("stall") })

// buildHere builds the program in the named subfolder of this folder, and returns its path.
func buildHere(name string) (string, error) {
	build := exec.Command("go", "build", "-trimpath", "-o", filepath.Join(testDir, name), "./"+name)
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build %s: %w\n%s", name, err, out)
	}
	return filepath.Join(testDir, name), nil
}

func stall(t *testing.T) string {
	t.Helper()
	path, err := stallBinary()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// fuzzStall runs `sandbox fuzz` on the manifest of a Stall with the given flags. The given mistakes
// are the operator's --mistakes flag, and may be followed by other flags of the operator.
func fuzzStall(t *testing.T, dir, mistakes string, flags ...string) result {
	t.Helper()
	args := append([]string{"fuzz", "--install", "testdata/stall-crd.yaml", "--object", "testdata/stall.yaml", "--dir", dir, "--nodes", "0", "--quiet", "1s", "--patience", "5s"}, flags...)
	args = append(args, "--", stall(t), "--mistakes")
	return play(t, append(args, strings.Split(mistakes, " ")...)...)
}

// TestFuzzFindsMistakes checks that fuzz finds each mistake of the stall operator with the edit
// that reveals it, and reports nothing else. Each finding must occur again in a replay until the
// operator is fixed.
func TestFuzzFindsMistakes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	r := fuzzStall(t, dir, "panic,stuck,leftover,loop,sticky --counts",
		"--jobs", "2", "--only", "spec.items: empty", "--only", "spec.interval: a duration without a unit", "--only", "spec.interval: a longer duration", "--only", "spec.extra: added",
		"--only", "spec.replicas: negative", "--only", "spec.message: with a suffix", "--only", "spec.message: one too long", "--only", "as in a rule")
	if r.code != 2 {
		t.Fatalf("exit code %d\n%s%s", r.code, r.stdout, r.stderr)
	}
	for _, line := range []string{
		`spec\.items: empty \(.* s\): FOUND: operator failed: panic: runtime error: index out of range`,
		`spec\.interval: a duration without a unit \(.* s\): FOUND: does not heal: .*stuck`,
		`spec\.interval: a longer duration \(.* s\): ok`,
		`spec\.extra: added \(.* s\): FOUND: not undone: configmaps default/market-extra: it is there, and should not be`,
		`spec\.replicas: negative \(.* s\): FOUND: not at rest: `,
		`spec\.message: with a suffix \(.* s\): FOUND: other than a new one: edited, configmaps default/market: data\.message is open, not open2`,
		`spec\.message: one too long \(.* s\): refused`,
		`spec\.message: "closed", as in a rule \(.* s\): refused`,
	} {
		if !regexp.MustCompile(line).MatchString(r.stderr) {
			t.Errorf("no line matches %s", line)
		}
	}
	if !strings.Contains(r.stdout, "Found: 5.") {
		t.Error("there are not five findings")
	}
	if t.Failed() {
		t.Fatalf("%s\n%s", r.stdout, r.stderr)
	}
	for _, file := range []string{"report.html", "junit.xml"} {
		text, err := os.ReadFile(filepath.Join(dir, file))
		if err != nil || !strings.Contains(string(text), "spec.interval: a duration without a unit") {
			t.Errorf("%s: %v\n%s", file, err, text)
		}
	}
	if merged := command(t, "fuzz", "report", dir); merged.code != 2 || !strings.Contains(merged.stdout, "Found: 5.") || strings.Contains(merged.stdout, " in 0s") {
		t.Errorf("report: exit code %d\n%s%s", merged.code, merged.stdout, merged.stderr)
	}
	file := regexp.MustCompile(`(?s)does not heal.*?again: sandbox replay (\S+)`).FindStringSubmatch(r.stdout)
	if file == nil {
		t.Fatalf("the report does not say how to play it again:\n%s", r.stdout)
	}
	mustReplay(t, file[1], "5s", "does not heal", "It is not found any more")
}

// TestFuzzLearnsAgain checks that fuzz learns the fault-free result a second time if a slow
// operator was not yet done when the first one was recorded. An object or a field that only the
// second result contains must still be judged.
func TestFuzzLearnsAgain(t *testing.T) {
	t.Parallel()
	const script = `n=$(cat "$0" || echo 0); echo $((n+1)) > "$0"
exec "$1" --mistakes sticky "$2=$(test "$n" = 0 && echo true || echo false)"`
	for _, slow := range []string{"--late", "--half"} {
		r := play(t, "fuzz", "--install", "testdata/stall-crd.yaml", "--object", "testdata/stall.yaml", "--dir", t.TempDir(), "--nodes", "0", "--quiet", "1s", "--patience", "5s",
			"--jobs", "1", "--only", "spec.message: with a suffix", "--", "sh", "-c", script, filepath.Join(t.TempDir(), "starts"), stall(t), slow)
		if r.code != 2 || !strings.Contains(r.stderr, "learning again, with a quiet time of 2s") || !strings.Contains(r.stdout, "configmaps default/market: data.message is open, not open2") {
			t.Errorf("%s: exit code %d\n%s%s", slow, r.code, r.stdout, r.stderr)
		}
	}
}

// TestFuzzReady checks that --ready makes fuzz wait for an operator that pauses for longer than the
// quiet time, and that fuzz ends with an error if the sample never gets ready.
func TestFuzzReady(t *testing.T) {
	t.Parallel()
	play := func(ready string, flags ...string) result {
		args := append([]string{"fuzz", "--install", "testdata/stall-crd.yaml", "--object", "testdata/stall.yaml", "--dir", t.TempDir(), "--nodes", "0", "--quiet", "1s", "--patience", "10s",
			"--jobs", "1", "--only", "spec.message: with a suffix", "--ready", ready}, flags...)
		return play(t, append(args, "--", stall(t), "--pause", "4s")...)
	}
	r := play("objects['configmaps'].exists(c, c.metadata.name == 'market')")
	if r.code != 0 || !strings.Contains(r.stderr, "Learnt: the sample comes to 1 more object") || !strings.Contains(r.stderr, "spec.message: with a suffix") {
		t.Errorf("exit code %d\n%s%s", r.code, r.stdout, r.stderr)
	}
	r = play("object.status.phase == 'Running'", "--settle", "10s")
	if r.code != 1 || !strings.Contains(r.stderr, "the sample does not get ready: --ready: no such key: phase") {
		t.Errorf("never ready: exit code %d\n%s%s", r.code, r.stdout, r.stderr)
	}
}

// TestFuzzApplications checks that the operator reaches an application of the workload that fuzz uses,
// and that the replay of a finding has it, too.
func TestFuzzApplications(t *testing.T) {
	t.Parallel()
	crd, err := filepath.Abs("testdata/stall-crd.yaml")
	if err != nil {
		t.Fatal(err)
	}
	bank := filepath.Join(t.TempDir(), "bank.yaml")
	if err := os.WriteFile(bank, []byte(`apiVersion: v1
kind: Pod
metadata: {name: bank, namespace: default, labels: {app: bank}}
spec: {containers: [{name: bank, image: bank}]}
---
apiVersion: v1
kind: Service
metadata: {name: bank, namespace: default}
spec: {selector: {app: bank}, ports: [{port: 80}]}
`), 0o600); err != nil {
		t.Fatal(err)
	}
	file := workloadFile(t, fmt.Sprintf("install: [%s, %s]\nnodes: 1\napplications: [{pods: app=bank, port: 80, http: [{path: /}]}]\nsteps: [{run: 'false'}]\n", crd, bank))
	r := play(t, "fuzz", "--workload", file, "--object", "testdata/stall.yaml", "--dir", t.TempDir(), "--quiet", "1s", "--patience", "5s", "--jobs", "1",
		"--only", "spec.message: with a suffix", "--", stall(t), "--mistakes", "sticky", "--ask", "http://bank.default")
	found := regexp.MustCompile(`again: sandbox replay (\S+)`).FindStringSubmatch(r.stdout)
	if r.code != 2 || found == nil || !strings.Contains(r.stdout, "configmaps default/market: data.message is open, not open2") {
		t.Fatalf("exit code %d\n%s%s", r.code, r.stdout, r.stderr)
	}
	mustReplay(t, found[1], "5s", "configmaps default/market: data.message is open, not open2", "It is not found any more")
}

// TestFuzzBusy checks that fuzz needs --busy to find a mistake that only shows if a new object is
// edited while the operator is still handling it, and that the finding replays until the operator
// is fixed.
func TestFuzzBusy(t *testing.T) {
	t.Parallel()
	// The operator takes 50 writes for a new object, each of which may take half a second.
	const long = "30s"
	only := []string{"--only", "spec.message: with a suffix", "--jobs", "1", "--quiet", "3s", "--patience", long}
	t.Run("without --busy", func(t *testing.T) {
		t.Parallel()
		if r := fuzzStall(t, t.TempDir(), "rigid", only...); r.code != 0 {
			t.Errorf("exit code %d\n%s%s", r.code, r.stdout, r.stderr)
		}
	})
	dir := t.TempDir()
	r := fuzzStall(t, dir, "rigid", append(slices.Clone(only), "--busy")...)
	if r.code != 2 || !strings.Contains(r.stdout, "after a new object was edited and the sample restored, both at once") || !strings.Contains(r.stdout, "stuck") {
		t.Fatalf("exit code %d\n%s%s", r.code, r.stdout, r.stderr)
	}
	found, err := filepath.Glob(filepath.Join(dir, "finding-*.yaml"))
	if err != nil || len(found) != 1 {
		t.Fatalf("the findings are %q, %v", found, err)
	}
	mustReplay(t, found[0], long, "stuck", "It is not found any more")
}

// mustReplay checks that a finding occurs again in a replay with the mistake, and does not occur
// with a correct operator. The replay waits for the full --patience, which is the given one, only if the
// finding occurs again.
func mustReplay(t *testing.T, finding, patience, says, saysFixed string) {
	t.Helper()
	t.Run("again", func(t *testing.T) {
		t.Parallel()
		if r := play(t, "replay", "--quiet", "1s", "--patience", patience, finding); r.code != 2 || !strings.Contains(r.stdout, says) {
			t.Errorf("exit code %d\n%s%s", r.code, r.stdout, r.stderr)
		}
	})
	t.Run("fixed", func(t *testing.T) {
		t.Parallel()
		if r := play(t, "replay", "--quiet", "1s", "--patience", "30s", finding, "--", stall(t)); r.code != 0 || !strings.Contains(r.stdout, saysFixed) {
			t.Errorf("exit code %d\n%s%s", r.code, r.stdout, r.stderr)
		}
	})
}

// TestFuzzFaults checks that fuzz needs --faults to find a mistake that only shows if the operator
// is killed after an edit, and that the finding replays until the operator is fixed.
func TestFuzzFaults(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	only := []string{"--only", "spec.message: with a suffix", "--patience", "10s", "--jobs", "1"}
	r := fuzzStall(t, dir, "hasty", append(slices.Clone(only), "--faults")...)
	if r.code != 2 {
		t.Fatalf("exit code %d\n%s%s", r.code, r.stdout, r.stderr)
	}
	const found = "spec.message: with a suffix; with CrashAfter of the first update stalls.example.com/status default/market"
	for _, line := range []string{
		`spec\.message: with a suffix \(.* s\): ok`,
		`spec\.message: with a suffix; with CrashBefore of the first update configmaps default/market \(.* s\): FOUND: other state: `,
		regexp.QuoteMeta(found) + ` \(.* s\): FOUND: other state: configmaps default/market: data\.message is open, not open2`,
	} {
		if !regexp.MustCompile(line).MatchString(r.stderr) {
			t.Errorf("no line matches %s", line)
		}
	}
	for _, text := range []string{
		"Played 5 in ", "; 4 with a fault, of which 4 were reached", "Found: 1.", "kit       FAULT: ", "can it happen: A process can be killed at any moment",
		"then update stalls.example.com/status default/market: killed when it is done and not answered, and started again",
	} {
		if !strings.Contains(r.stdout, text) {
			t.Errorf("the report does not say %q", text)
		}
	}
	if t.Failed() {
		t.Fatalf("%s\n%s", r.stdout, r.stderr)
	}
	for _, file := range []string{"report.html", "junit.xml"} {
		if text, err := os.ReadFile(filepath.Join(dir, file)); err != nil || !strings.Contains(string(text), found) {
			t.Errorf("%s: %v\n%s", file, err, text)
		}
	}
	file := regexp.MustCompile(`again: sandbox replay (\S+)`).FindStringSubmatch(r.stdout)
	if file == nil {
		t.Fatalf("the report does not say how to play it again:\n%s", r.stdout)
	}
	t.Run("without the mistake", func(t *testing.T) {
		t.Parallel()
		r := fuzzStall(t, t.TempDir(), "", append(slices.Clone(only), "--patience", "30s", "--faults")...)
		if r.code != 0 || !strings.Contains(r.stdout, "; 4 with a fault, of which 4 were reached") || !strings.Contains(r.stdout, "Found: 0.") {
			t.Errorf("exit code %d\n%s%s", r.code, r.stdout, r.stderr)
		}
	})
	mustReplay(t, file[1], "5s", found, "the operator survives this edit with this fault")
}

// TestFuzzWithoutMistakes checks that an operator without mistakes survives all edits, even several
// edits at a time, and that its results are not mixed with another operator's.
func TestFuzzWithoutMistakes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	only := []string{"--jobs", "1", "--patience", "30s"}
	for _, edit := range []string{
		"spec.items: empty", "spec.interval: a duration without a unit", "spec.extra: added", "spec.replicas: negative",
		"spec.message: with a suffix", "spec.items: as many as may be", "spec.message: a path",
	} {
		only = append(only, "--only", edit)
	}
	r := fuzzStall(t, dir, "", only...)
	if r.code != 0 || !strings.Contains(r.stdout, "Found: 0.") {
		t.Fatalf("exit code %d\n%s%s", r.code, r.stdout, r.stderr)
	}
	if ok := strings.Count(r.stderr, ": ok\n"); ok < 8 || !strings.Contains(r.stderr, "; at once ") {
		t.Errorf("%d edits were played:\n%s", ok, r.stderr)
	}
	if other := fuzzStall(t, dir, "panic", only...); other.code != 1 || !strings.Contains(other.stderr, "has the results of another object or operator") {
		t.Errorf("exit code %d\n%s", other.code, other.stderr)
	}
}

// TestFuzzRights checks that fuzz names the rights that the operator lacks, if it does nothing
// without them.
func TestFuzzRights(t *testing.T) {
	t.Parallel()
	r := play(t, "fuzz", "--dir", t.TempDir(), "--install", "testdata/stall-crd.yaml", "--object", "testdata/stall.yaml", "--nodes", "0",
		"--service-account", "default/default", "--quiet", "1s", "--settle", "30s", "--", stall(t))
	if r.code != 1 || !strings.Contains(r.stderr, "it may not: list stalls.example.com") || !strings.Contains(r.stderr, ": what gives its ServiceAccount these rights must be among what is installed") {
		t.Errorf("exit code %d\n%s%s", r.code, r.stdout, r.stderr)
	}
}

// TestFuzzInput checks that each input error is reported in a single line, before anything is
// started if possible.
func TestFuzzInput(t *testing.T) {
	write := func(text string) string {
		file := filepath.Join(t.TempDir(), "file.yaml")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	const crd, sample = "testdata/stall-crd.yaml", "testdata/stall.yaml"
	noSchema := write(strings.NewReplacer("NAME", "nothings.example.com").Replace(`
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: NAME}
spec:
  group: example.com
  scope: Cluster
  names: {kind: Nothing, plural: nothings}
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]
`))
	nothing := write("apiVersion: example.com/v1\nkind: Nothing\nmetadata: {name: a}\n")
	for _, tc := range []struct {
		name string
		args []string
		says string
	}{
		{"no program", []string{"--install", crd, "--object", sample}, "requires a program, after --"},
		{"nothing to install", []string{"--object", sample, "--", "true"}, "--install is missing: name the file of the CustomResourceDefinition"},
		{"no object", []string{"--install", crd, "--", "true"}, "--object is missing: name the file"},
		{"a file that is not there", []string{"--install", "missing.yaml", "--object", sample, "--", "true"}, "--install: stat "},
		{"an object that is not there", []string{"--install", crd, "--object", "missing.yaml", "--", "true"}, "--object: open missing.yaml: no such file"},
		{"an object without a name", []string{"--install", crd, "--object", write("apiVersion: a/v1\nkind: A\n"), "--", "true"}, "has no metadata.name"},
		{"a program that is not there", []string{"--install", crd, "--object", sample, "--", "./missing"}, "the operator: "},
		{"no jobs", []string{"--install", crd, "--object", sample, "--jobs", "0", "--", "true"}, "--jobs 0: at least 1 is needed"},
		{"fewer than no nodes", []string{"--install", crd, "--object", sample, "--nodes", "-1", "--", "true"}, "--nodes -1: there cannot be fewer than 0"},
		{"a wrong shard", []string{"--install", crd, "--object", sample, "--shard", "0/4", "--", "true"}, `--shard "0/4": want I/N`},
		{"a definition without a schema", []string{"--install", noSchema, "--object", nothing, "--nodes", "0", "--", "true"}, "the CustomResourceDefinition nothings.example.com has no schema for the version v1"},
		{"an object of another kind", []string{"--install", crd, "--object", nothing, "--nodes", "0", "--", "true"}, "no CustomResourceDefinition that --install installs is that of Nothing of example.com/v1: there are Stall of example.com/v1"},
		{"an operator that does not start", []string{"--install", crd, "--object", sample, "--nodes", "0", "--settle", "10s", "--", "false"}, "when the operator was started, though nothing was edited: operator failed: the operator ended by itself: exit status 1"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			r := command(t, append([]string{"fuzz", "--dir", t.TempDir()}, tc.args...)...)
			// Progress lines may precede the error.
			_, said, _ := strings.Cut("\n"+strings.TrimSpace(r.stderr), "\nerror: ")
			if r.code != 1 || !strings.Contains(said, tc.says) || strings.Contains(said, "\n") {
				t.Errorf("exit code %d\n%s%s, want %q", r.code, r.stdout, r.stderr, tc.says)
			}
		})
	}
}
