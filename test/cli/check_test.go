// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"regexp"
	"strings"
	"testing"

	"tidekeeper.dev/tidekeeper/test/framework"
)

// checks runs kubectl tide check, and returns its findings, keyed by the check's name, and its exit
// code.
func checks(t *testing.T, c command) (map[string]string, int) {
	t.Helper()
	r := c.run(t)
	found := map[string]string{}
	for line := range strings.Lines(r.stdout) {
		if cells := regexp.MustCompile(` {3,}`).Split(strings.TrimSpace(line), 3); len(cells) == 3 {
			found[cells[0]] = cells[1] + ": " + cells[2]
		}
	}
	if r.stderr != "" {
		t.Errorf("stderr of check: %s", r.stderr)
	}
	return found, r.code
}

// TestNoManagerLeads checks that, while no manager leads, commands print a note that their output
// may be outdated, and kubectl tide check reports the problem.
func TestNoManagerLeads(t *testing.T) {
	c := framework.Start(t)
	on := func(args ...string) command { return command{kubeconfig: c.Kubeconfig, args: args} }
	wants := func(what string, code int, want map[string]string) {
		t.Helper()
		found, got := checks(t, on("check"))
		if got != code {
			t.Errorf("%s: exit code %d, want %d", what, got, code)
		}
		for check, pattern := range want {
			if !regexp.MustCompile("^(?:" + pattern + ")$").MatchString(found[check]) {
				t.Errorf("%s: %s is %q, want %s", what, check, found[check], pattern)
			}
		}
	}
	outdated := func(what, pattern string, commands ...string) {
		t.Helper()
		for _, args := range commands {
			r := on(strings.Fields(args)...).run(t)
			if r.code != 0 || r.stdout == "" || !regexp.MustCompile(`^(?:`+pattern+`)\n$`).MatchString(r.stderr) {
				t.Errorf("%s: %s: exit code %d, stderr %q, want %s", what, args, r.code, r.stderr, pattern)
			}
		}
	}

	// Without a lease or objects, nothing shows whether a manager is running.
	wants("nothing", 0, map[string]string{
		"kinds": "ok: the cluster serves NodePool, ScheduledRestart, Freeze and NodeMaintenance", "manager": "unknown: there is no lease tidekeeper: .*", "nodepools": "ok: there are none", "scheduledrestarts": "ok: there are none", "nodemaintenances": "ok: there are none",
		"your rights": "ok: you may use every command",
	})

	if found, code := checks(t, on("check", "--timeout", "1s")); code != 1 || !strings.HasPrefix(found["manager"], "failed: no manager leads after 1s: there is no lease tidekeeper") {
		t.Errorf("no manager led in time: exit code %d, %q", code, found)
	}

	c.Apply(t, framework.Pool("worker"))
	if out, err := c.Kubectl(`{apiVersion: tidekeeper.dev/v1, kind: ScheduledRestart, metadata: {name: web}, spec: {schedule: 0 3 * * *, targetRef: {kind: Deployment, name: web}}}`, "apply", "-f", "-"); err != nil {
		t.Fatal(err, out)
	}
	framework.Eventually(t, "it is noticed that nothing has observed them", func() error {
		return diff(true, strings.Contains(on("restarts").run(t).stderr, "observed"))
	})
	outdated("no lease", `note: no manager has observed NodePool worker for \S+: this may be out of date: see kubectl tide check`, "pools", "pools describe worker")
	outdated("no lease", `note: no manager has observed ScheduledRestart web for \S+: this may be out of date: see kubectl tide check`, "restarts")
	wants("no lease", 1, map[string]string{
		"manager": "failed: there is no lease tidekeeper, and .*", "nodepools": "failed: no manager has observed NodePool worker .*", "scheduledrestarts": "failed: no manager has observed ScheduledRestart web .*",
	})

	m := c.StartManager(t, c.ElectUntilReleased(t)...)
	if r := on("check", "--timeout", "10m").run(t); !strings.Contains(r.stdout, " leads (namespace tidekeeper-system)\n") {
		t.Errorf("waiting for a leader: %+v", r)
	}
	framework.Eventually(t, "all is observed", func() error {
		found, code := checks(t, on("check"))
		return diff(map[string]string{"code": "0", "nodepools": "ok: the manager has observed 1 of 1", "scheduledrestarts": "ok: the manager has observed 1 of 1"},
			map[string]string{"code": map[bool]string{true: "0"}[code == 0], "nodepools": found["nodepools"], "scheduledrestarts": found["scheduledrestarts"]})
	})
	for _, args := range []string{"pools", "pools describe worker", "restarts"} {
		if r := on(strings.Fields(args)...).run(t); r.code != 0 || r.stderr != "" {
			t.Errorf("with a leader: %s: %+v", args, r)
		}
	}

	// The manager exits, but its lease remains.
	m.Stop(t)
	none := `note: no manager leads: the lease tidekeeper has (no holder|had no holder for \w+) \(namespace tidekeeper-system\): this may be out of date: see kubectl tide check`
	outdated("it has ended", none, "pools", "pools describe worker", "restarts")
	wants("it has ended", 1, map[string]string{"manager": "failed: the lease tidekeeper has (no holder|had no holder for \\w+): see kubectl -n tidekeeper-system get pods, and their logs", "nodepools": "ok: .*"})

	if r := on("restarts", "now", "web", "--dry-run=server").run(t); r.code != 0 || !regexp.MustCompile(`note: no manager leads: the lease tidekeeper has (no holder|had no holder for \w+) \(namespace tidekeeper-system\): the request waits until one does: see kubectl tide check\n`).MatchString(r.stderr) {
		t.Errorf("a request while none leads: %+v", r)
	}

	// For a user without rights, the output names the missing rights.
	nobody := c.UserKubeconfig(t, "nobody")
	found, code := checks(t, command{kubeconfig: nobody, args: []string{"check"}})
	if code != 0 || !strings.HasPrefix(found["manager"], `unknown: leases.coordination.k8s.io "tidekeeper" is forbidden`) ||
		!strings.HasPrefix(found["your rights"], "warning: you may not list NodePools (needed by pools); list nodes") ||
		!strings.HasSuffix(found["your rights"], "; patch NodeMaintenances (needed by maintenance suspend, resume); patch nodes (needed by maintenance done)") {
		t.Errorf("without rights: exit code %d, %q", code, found)
	}
}
