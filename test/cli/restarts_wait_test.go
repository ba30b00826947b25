// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"regexp"
	"strings"
	"testing"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
)

// TestRestartsNowWait checks that --wait ends with the outcomes of the command's own requests, not
// of earlier restarts, and that the exit code reports whether all requests succeeded.
func TestRestartsNowWait(t *testing.T) {
	cluster.StartManager(t)
	cluster.AddNodes(t, "waits", 2)
	aNamespace(t, "waits")
	aDeployment(t, "waits", "web")
	aRestart(t, "waits", "web", "@yearly", nil)
	lost := aRestart(t, "waits", "lost", "@yearly", func(r *tidekeeperv1.ScheduledRestart) { r.Spec.StartingDeadlineSeconds = 10 })
	eventuallyStatus(t, "waits", "web", "Scheduled")

	for n := 1; n <= 2; n++ {
		r := command{args: []string{"restarts", "now", "web", "-n", "waits", "--wait"}}.run(t)
		if r.code != 0 || !regexp.MustCompile(`\nscheduledrestart\.tidekeeper\.dev/web: Succeeded, in [0-9ms]+`).MatchString(r.stdout) {
			t.Fatalf("exit code %d\n%s%s", r.code, r.stdout, r.stderr)
		}
		if rows := fields(tide(t, "restarts", "history", "web", "-n", "waits")); len(rows) != 1+n {
			t.Fatalf("after %d waits, the history is %q", n, rows)
		}
	}

	r := command{args: []string{"restarts", "now", "--all", "-n", "waits", "--wait"}}.run(t)
	if r.code != 2 || !strings.Contains(r.stdout, "/web: Succeeded") || !strings.Contains(r.stdout, "/lost: Missed: TargetNotFound: ") {
		t.Errorf("a restart that is missed: exit code %d\n%s%s", r.code, r.stdout, r.stderr)
	}
	cluster.Change(t, lost, func() { lost.Spec.StartingDeadlineSeconds = 900 })
	for name, tc := range map[string]struct {
		args []string
		says string
	}{
		"it takes too long":     {[]string{"--wait", "--timeout", "1ms"}, "error: 1 of 1 requested restarts have no outcome after 1ms, and are not withdrawn: scheduledrestart.tidekeeper.dev/lost: "},
		"a timeout without it":  {[]string{"--timeout", "1m"}, "error: --timeout needs --wait"},
		"nothing is restarted":  {[]string{"--wait", "--dry-run=server"}, "error: --wait and --dry-run exclude each other"},
		"not a duration":        {[]string{"--wait", "--timeout", "soon"}, "write a duration such as 30m"},
		"time that has run out": {[]string{"--wait", "--timeout", "-1s"}, "write a duration such as 30m"},
	} {
		t.Run(name, func(t *testing.T) {
			r := command{args: append([]string{"restarts", "now", "lost", "-n", "waits"}, tc.args...)}.run(t)
			if r.code != 1 || !strings.Contains(r.stderr, tc.says) {
				t.Errorf("exit code %d\n%s%s", r.code, r.stdout, r.stderr)
			}
		})
	}

	// The restarts above have succeeded: only the new request, which waits, counts.
	if out, err := cluster.Kubectl("", "rollout", "pause", "deployment/web", "-n", "waits"); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	r = command{args: []string{"restarts", "now", "web", "-n", "waits", "--wait", "--timeout", "2s"}}.run(t)
	if r.code != 1 || strings.Contains(r.stdout, "Succeeded") || !strings.Contains(r.stderr, "have no outcome after 2s") {
		t.Errorf("a restart that waits: exit code %d\n%s%s", r.code, r.stdout, r.stderr)
	}
}
