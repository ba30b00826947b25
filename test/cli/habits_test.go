// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/test/framework"
)

// TestDeletedPoolSaysSo checks that a pool that was deleted while no manager is running is shown as
// "Deleting", with the reason why it still exists.
func TestDeletedPoolSaysSo(t *testing.T) {
	pool := framework.Pool("going")
	pool.Finalizers = []string{tidekeeperv1.NodePoolFinalizer}
	cluster.Apply(t, pool)
	t.Cleanup(func() {
		_, _ = cluster.Kubectl("", "patch", "nodepools.tidekeeper.dev", "going", "--type=merge", "-p", `{"metadata":{"finalizers":null}}`)
	})
	if out, err := cluster.Kubectl("", "delete", "nodepools.tidekeeper.dev", "going", "--wait=false"); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if row := fields(tide(t, "pools", "going", "--no-headers")); row[0][1] != "Deleting" {
		t.Errorf("the list says %q", row)
	}
	const want = `(?m)^Status: +Deleting, deletion requested \d+s ago, waiting for the finalizer tidekeeper.dev/node-pool; is a manager running\?$`
	if shown := tide(t, "pools", "describe", "going"); !regexp.MustCompile(want).MatchString(shown) {
		t.Errorf("describe says\n%s", shown)
	}
}

// TestNamesFeedCommands checks that a command's output with -o name is valid input for other
// commands.
func TestNamesFeedCommands(t *testing.T) {
	aNamespace(t, "names")
	for _, name := range []string{"api", "web", "job"} {
		aRestart(t, "names", name, "0 3 * * *", func(r *tidekeeperv1.ScheduledRestart) { r.Spec.TargetRef.Name = strings.Replace(name, "job", "web", 1) })
	}
	// shell returns the standard output of a script. The commands may say on stderr that no manager
	// has observed the objects for a while.
	shell := func(script string) string {
		t.Helper()
		var stderr strings.Builder
		p := command{}.process()
		p = &exec.Cmd{Path: "/bin/sh", Args: []string{"sh", "-c", script}, Env: p.Env, Stderr: &stderr}
		out, err := p.Output()
		if err != nil {
			t.Errorf("%s: %v\n%s%s", script, err, out, stderr.String())
		}
		return string(out)
	}
	got := shell("kubectl tide restarts -n names --older-than 24h -o name | xargs kubectl tide restarts suspend -n names")
	if want := "scheduledrestart.tidekeeper.dev/api suspended\nscheduledrestart.tidekeeper.dev/job suspended\nscheduledrestart.tidekeeper.dev/web suspended\n"; got != want {
		t.Errorf("-o name into suspend: %s", got)
	}
	if got := tide(t, "restarts", "resume", "deployment/web", "-n", "names"); strings.Count(got, " resumed; next start ") != 2 {
		t.Errorf("resume of a workload with two schedules: %s", got)
	}
	if got := tide(t, "restarts", "resume", "--all", "-n", "names", "--dry-run=server"); !regexp.MustCompile(`/api resumed; next start \w+ 03:00 UTC \(in \w+\) \(server dry run\)\n`).MatchString(got) {
		t.Errorf("a dry run: %s", got)
	}
	if got := fields(tide(t, "restarts", "api", "-n", "names", "--no-headers")); got[0][len(got[0])-1] != "-" || got[0][0] != "api" {
		t.Errorf("one by name, still suspended: %q", got)
	}
	if got := tide(t, "restarts", "-n", "names", "-l", "app in (api,web)", "--sort-by", ".spec.suspend", "-o", "custom-columns=NAME:.metadata.name,OFF:.spec.suspend"); got != "NAME   OFF\nweb    <none>\napi    true\n" && got != "NAME   OFF\nweb    false\napi    true\n" {
		t.Errorf("sorted, with columns: %q", got)
	}
	r := command{args: strings.Fields("restarts now deployment/web -n names")}.run(t)
	if err := diff(result{code: 1, stderr: "error: Deployment/web is restarted by job, web: name one of them\n"}, r); err != nil {
		t.Errorf("now of a workload with two schedules %v", err)
	}
	r = command{args: strings.Fields("restarts now eru/web -n names")}.run(t)
	if r.code != 0 || !strings.Contains(r.stderr, "note: Deployment/web is also restarted by job\n") || !strings.HasPrefix(r.stdout, "scheduledrestart.tidekeeper.dev/web: requested") {
		t.Errorf("now of one of two: %+v", r)
	}
	r = command{args: strings.Fields("restarts history api -n names")}.run(t)
	if r.code != 0 || !strings.Contains("\n"+r.stderr, "\napi has not run yet, and is suspended") {
		t.Errorf("no history: %+v", r)
	}
}

// TestHabitsOfKubectl checks flags that kubectl users type out of habit.
func TestHabitsOfKubectl(t *testing.T) {
	cluster.Apply(t, framework.Pool("habit"))
	if got := tide(t, "pools", "-A", "--no-headers", "nodepool/habit"); !strings.HasPrefix(got, "habit ") {
		t.Errorf("pools -A: %s", got)
	}
	if got := tide(t, "pools", "describe", "habit", "-o", "yaml"); !strings.Contains(got, "\nname: habit\n") || !strings.Contains(got, "\nselector: node-role.kubernetes.io/habit\n") {
		t.Errorf("describe -o yaml:\n%s", got)
	}
	for args, want := range map[string]result{
		"node":                       {code: 1, stderr: "error: unknown command \"node\" for \"kubectl tide\": did you mean pools?\n"},
		"pools none":                 {code: 3, stderr: "error: there is no NodePool \"none\"\n"},
		"pools plan habit":           {code: 1, stderr: "error: kubectl tide pools plan takes no names: plan a manifest with -f FILE or -k DIRECTORY, or the deletion of a pool with --delete NAME\n"},
		"restarts sespend":           {code: 1, stderr: "error: unknown command \"sespend\" for \"kubectl tide restarts\": did you mean suspend?\n"},
		"pools -o jsonpath={.x":      {code: 1, stderr: "error: -o jsonpath={.x: error parsing jsonpath {.x, unclosed action\n"},
		"restarts -A -n shop -l a=b": {stderr: "note: -A is for all namespaces; -n shop is ignored\nThere are no scheduled restarts that match.\n"},
	} {
		if err := diff(want, command{args: strings.Fields(args)}.run(t)); err != nil {
			t.Errorf("kubectl tide %s %v", args, err)
		}
	}
	if r := (command{args: []string{"pools", "-v=6"}}).run(t); r.code != 0 || !strings.Contains(r.stderr, "nodepools") {
		t.Errorf("-v=6 shows no request: %+v", r)
	}
	// When --request-timeout expires, a watch ends with exit code 0.
	for args, began := range map[string]string{"pools -w": "NAME ", "pods watch none": "No such pods yet"} {
		// On a busy machine, the timeout may expire before the watch begins.
		for timeout := 5 * time.Second; ; timeout *= 2 {
			start := time.Now()
			r := command{args: append(strings.Fields(args), "--request-timeout="+timeout.String())}.run(t)
			if !strings.Contains(r.stdout+r.stderr, began) && timeout < framework.Patience {
				continue
			}
			if took := time.Since(start); r.code != 0 || took < timeout || strings.Contains(r.stderr, "again") {
				t.Errorf("%s: exit code %d after %s, want 0 after %s\n%s%s", args, r.code, took, timeout, r.stdout, r.stderr)
			}
			break
		}
	}
}

// TestNarrowTerminals checks that a pool's numbers and a schedule's next start are not cut off in
// terminals of 60, 80 and 100 columns.
func TestNarrowTerminals(t *testing.T) {
	name := "a-pool-with-a-name-that-is-long"
	pool := framework.Pool(name)
	cluster.Apply(t, pool)
	cluster.ChangeStatus(t, pool, func() {
		pool.Status.NodeCount, pool.Status.ReadyNodes = 1000, 998
		pool.Status.RequestedPercent = map[corev1.ResourceName]int32{"cpu": 97, "memory": 98, "pods": 100}
	})
	aNamespace(t, "narrow")
	aRestart(t, "narrow", "a-restart-with-a-name-that-is-long", "0 3 * * 1-5", func(r *tidekeeperv1.ScheduledRestart) { r.Spec.Suspend = true })
	for _, columns := range []int{60, 80, 100} {
		for args, like := range map[string]string{
			"pools " + name:          ` 998/1000 +\S* *97% +\S* *98% +\S* *100%`,
			"restarts -A":            `NEXT \(UTC\)\s`,
			"restarts next":          ``,
			"pools describe " + name: `memory`,
		} {
			shown := command{args: strings.Fields(args), env: []string{"NO_COLOR=1", "LANG=C.UTF-8"}}.runOn(t, columns).stdout
			if !regexp.MustCompile(like).MatchString(shown) {
				t.Errorf("%s at %d columns has no %s:\n%s", args, columns, like, shown)
			}
			for line := range strings.Lines(shown) {
				if n := len([]rune(strings.TrimRight(line, "\n"))); n > columns && !strings.HasPrefix(args, "pools describe") && !strings.HasPrefix(line, "note: ") {
					t.Errorf("%s at %d columns: a line has %d: %s", args, columns, n, line)
				}
			}
		}
	}
	if ascii := (command{args: []string{"pools"}, env: []string{"NO_COLOR=1", "LC_ALL=C"}}).runOn(t, 120); strings.IndexFunc(ascii.stdout, func(r rune) bool { return r > 127 }) >= 0 {
		t.Errorf("in the locale C:\n%s", ascii.stdout)
	}
}
