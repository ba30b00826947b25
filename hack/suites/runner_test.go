// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"tidekeeper.dev/tidekeeper/internal/test/waitfor"
)

// shell returns a suite that runs a shell script and then reports a passed test named after the
// suite.
func shell(name, script string) suite {
	return suite{name: name, command: []string{"sh", "-c", script + `; echo '{"Action":"pass","Package":"p","Test":"Test` + name + `"}'`}}
}

// skipping returns a suite that skips a test for the given reason, and then runs a shell script.
func skipping(name, test, reason, script string) suite {
	return suite{name: name, command: []string{"sh", "-c", `
		echo '{"Action":"output","Package":"p","Test":"` + test + `","Output":"    a_test.go:5: ` + reason + `"}'
		echo '{"Action":"skip","Package":"p","Test":"` + test + `"}'
		` + script}}
}

func newTestRunner(t *testing.T) *runner {
	t.Helper()
	r := &runner{root: t.TempDir(), jobs: 2, admission: newAdmission(), screen: &screen{out: io.Discard}}
	r.book = newBook(r.screen)
	if err := os.WriteFile(filepath.Join(r.root, "Makefile"), []byte("tool:\n\techo once >>made\nbroken:\n\tfalse\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return r
}

func TestRunner(t *testing.T) {
	t.Parallel()
	r := newTestRunner(t)
	r.required = []string{"required", "must", "must-part", "must-package", "must-run", "must-most"}
	with := func(s suite, change func(*suite)) suite { change(&s); return s }
	missing := func() string { return "there is no browser" }
	const passes = `echo '{"Action":"pass","Package":"p","Test":"TestOther"}'`
	s := r.run(t.Context(), []suite{
		shell("plain", "true"),
		with(shell("needs", "grep -q once made"), func(s *suite) { s.needs = []string{"tool"} }),
		with(shell("too", "grep -q once made"), func(s *suite) { s.needs = []string{"tool"} }),
		with(shell("broken", "true"), func(s *suite) { s.needs = []string{"tool", "broken"} }),
		with(shell("skipped", "true"), func(s *suite) { s.requires = missing }),
		with(shell("required", "true"), func(s *suite) { s.requires = missing }),
		{name: "exits", command: []string{"sh", "-c", "exit 3"}},
		skipping("none", "TestNode", "SKIPPED: no root", "true"),
		skipping("most", "TestNode", "SKIPPED: no root", passes),
		skipping("must", "TestNode", "SKIPPED: no root", passes),
		skipping("must-part", "TestNode/part", "SKIPPED: no root", passes),
		{name: "must-package", command: []string{"sh", "-c", `
			echo '{"Action":"output","Package":"p","Output":"SKIPPED: no browser"}'
			echo '{"Action":"pass","Package":"p"}'`}},
		skipping("must-run", "TestLong", "only with TEST_ALL=1", "true"),
		skipping("must-most", "TestLong", "only with TEST_ALL=1, or it is SKIPPED: too long", passes),
	})
	var got []string
	for _, r := range s.suites {
		got = append(got, r.suite+" "+r.action+" "+r.output)
	}
	slices.Sort(got)
	want := []string{
		"broken fail make broken: exit status 2", "exits fail exit status 3", "most pass ",
		"must fail it is required, but this was skipped: p TestNode: no root", "must-most pass ",
		"must-package fail it is required, but this was skipped: p: no browser",
		"must-part fail it is required, but this was skipped: p TestNode/part: no root",
		"must-run fail it is required, but all of its tests were skipped",
		"needs pass ", "none skip each of its tests was skipped", "plain pass ",
		"required fail it is required, but there is no browser", "skipped skip there is no browser", "too pass ",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	made, err := os.ReadFile(filepath.Join(r.root, "made"))
	if err != nil || string(made) != "once\n" {
		t.Errorf("what two suites need was built %q times, %v", made, err)
	}
	if len(s.passed) != 7 || s.ok() {
		t.Errorf("%d tests passed, ok: %t", len(s.passed), s.ok())
	}
	var end strings.Builder
	s.write(&end)
	for _, line := range []string{
		"SKIPPED  none\n", "SKIPPED:\n  all of none: each of its tests was skipped\n  all of skipped: there is no browser\n",
		"  broken: make broken: exit status 2\n", "\n7 passed, 7 failed, ",
	} {
		if !strings.Contains(end.String(), line) {
			t.Errorf("the end lacks %q:\n%s", line, end.String())
		}
	}
}

// TestInterrupt checks that an interrupt also terminates the processes that a suite has started.
func TestInterrupt(t *testing.T) {
	t.Parallel()
	r := newTestRunner(t)
	ctx, cancel := context.WithCancel(t.Context())
	began := filepath.Join(r.root, "began")
	go func() {
		defer cancel()
		_ = wait.PollUntilContextCancel(ctx, time.Millisecond, true, func(context.Context) (bool, error) { return exists(began), nil })
	}()
	s := r.run(ctx, []suite{{name: "long", command: []string{"sh", "-c", "sleep 3600 & echo $! >pid; touch began; wait"}}})
	if s.ok() {
		t.Error("what was interrupted has passed")
	}
	pid, err := os.ReadFile(filepath.Join(r.root, "pid"))
	if err != nil {
		t.Fatal(err)
	}
	waitfor.Nil(t, "the system has ended the process", func() error {
		if exists("/proc/" + strings.TrimSpace(string(pid)) + "/cwd") {
			return errors.New("it runs")
		}
		return nil
	})
}

func TestChoose(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ in, want string }{
		{"e2e", "e2e"}, {"e2e,e2e,fast", "e2e,unit,cli,framework,sandbox-slice"}, {"nothing", "error"},
	} {
		suites, err := choose(strings.Split(test.in, ","))
		var names []string
		for _, s := range suites {
			names = append(names, s.name)
		}
		got := strings.Join(names, ",")
		if err != nil {
			got = "error"
		}
		if got != test.want {
			t.Errorf("%s: got %s, want %s", test.in, got, test.want)
		}
	}
}

// TestRounds checks that, for each suite, the rounds without a failure and the failures of each
// test are counted.
func TestRounds(t *testing.T) {
	t.Parallel()
	all := rounds{Suites: map[string]*suiteRounds{}}
	for _, action := range []string{"pass", "fail"} {
		b, _ := played(t, `{"Action":"`+action+`","Package":"x/p","Test":"TestA"}`+"\n")
		b.suiteEnded("s", action, 1, "")
		b.suiteEnded("absent", "skip", 1, "no browser")
		all.add(b.summarize(0))
	}
	var out strings.Builder
	all.print(&out)
	const want = "  s                1 of 2 rounds without a failure\n    failed 1 times: x/p TestA\n"
	if !strings.HasSuffix(out.String(), want) || strings.Contains(out.String(), "absent") || !all.failed() {
		t.Errorf("got\n%s", out.String())
	}
}

// TestRunnerOutOfTime checks that suites that could not begin in time are skipped with the reason,
// and fail if they are required.
func TestRunnerOutOfTime(t *testing.T) {
	t.Parallel()
	r := newTestRunner(t)
	r.jobs, r.within, r.required = 1, time.Nanosecond, []string{"required"}
	var got []string
	for _, s := range r.run(t.Context(), []suite{shell("late", "true"), shell("required", "true")}).suites {
		got = append(got, s.suite+" "+s.action+" "+s.output)
	}
	slices.Sort(got)
	const reason = "it could not begin within 1ns: the machine is too slow, or its caches were empty"
	if want := []string{"late skip " + reason, "required fail it is required, but " + reason}; !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

// TestSuiteEnvironment checks that the processes of a suite can ask for turns, and know how long tests
// may begin. A runner without a limit leaves the limit of its own process, which may be a test of
// another runner, as it is.
func TestSuiteEnvironment(t *testing.T) {
	t.Parallel()
	for within, script := range map[time.Duration]string{
		0:         `test -S "$TIDEKEEPER_TURNS" && test "$TIDEKEEPER_TESTS_UNTIL" = "` + os.Getenv(untilVariable) + `"`,
		time.Hour: `test -S "$TIDEKEEPER_TURNS" && test $((TIDEKEEPER_TESTS_UNTIL - $(date +%s))) -gt 3500`,
	} {
		r := newTestRunner(t)
		r.within = within
		if s := r.run(t.Context(), []suite{{name: "environment", command: []string{"sh", "-c", script}}}); !s.ok() {
			t.Errorf("within %s: not so: %s", within, script)
		}
	}
}
