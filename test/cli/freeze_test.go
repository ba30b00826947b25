// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/test/framework"
)

// TestFreezeAndThaw checks that a freeze that the plugin creates holds back restarts, that the
// commands forecast and gates show the freeze, and that thaw lifts it.
func TestFreezeAndThaw(t *testing.T) {
	cluster.StartManager(t)
	cluster.AddNodes(t, "cold", 1)
	aNamespace(t, "cold")
	aDeployment(t, "cold", "web")
	aRestart(t, "cold", "web", "0 3 29 2 *", nil)
	eventuallyStatus(t, "cold", "web", "Scheduled")
	t.Cleanup(func() { _, _ = cluster.Kubectl("", "delete", "freezes", "--all") })
	says := func(line string, code int, want string) string {
		t.Helper()
		got := command{args: strings.Fields(line)}.run(t)
		if got.code != code || !strings.Contains(got.stdout+got.stderr, want) {
			t.Errorf("kubectl tide %s: exit code %d\n%s%swant %d and %q", line, got.code, got.stdout, got.stderr, code, want)
		}
		return got.stdout
	}
	says("freeze -n cold,default --name first --until 2h --reason incident --dry-run=server", 0, "freeze.tidekeeper.dev/first created: no restart is started in cold, default until")
	says("freeze -n cold --name first --until 2h --reason incident", 0, "freeze.tidekeeper.dev/first created: no restart is started in cold until")
	says("restarts gates web -n cold", 2, "Frozen")
	says("restarts now web -n cold", 0, "requested a restart")
	eventuallyStatus(t, "cold", "web", "Frozen")
	says("restarts -n cold", 0, "Frozen")
	says("restarts forecast -n cold --for 3h", 2, "Missed/Frozen")
	says("freeze --name second --until 2099-01-01T00:00:00Z --reason other", 0, "in any namespace until")
	says("freeze --name second --until 2099-01-01T00:00:00Z --reason other", 1, `freezes.tidekeeper.dev "second" already exists`)
	says("thaw", 1, "there are 2 Freezes that have not ended: name one of first, second")
	says("thaw freeze/second", 0, "freeze.tidekeeper.dev/second lifted")
	says("thaw second", 3, `there is no Freeze "second"`)
	says("thaw", 0, "freeze.tidekeeper.dev/first lifted")
	says("thaw", 3, "there is no Freeze that has not ended")
	eventuallyStatus(t, "cold", "web", "Scheduled")
	if out := says("freeze --from 1h --until 2h --reason later", 0, "in any namespace from "); !strings.HasPrefix(out, "freeze.tidekeeper.dev/freeze-") {
		t.Errorf("its name: %s", out)
	}
}

// TestFreezeInput checks that invalid input is rejected with one line, before any request is sent
// to the cluster.
func TestFreezeInput(t *testing.T) {
	for _, tt := range []struct{ args, want string }{
		{"freeze", "error: --until is required: write a duration such as 4h, or a time such as 2026-12-27T08:00:00+01:00"},
		{"freeze --until soon --reason x", "error: --until=soon: write a duration such as 4h or 7d, or a time such as 2026-12-27T08:00:00+01:00"},
		{"freeze --until -4h --reason x", "error: --until=-4h: write a duration"},
		{"freeze --until 2020-01-01T00:00:00Z --reason x", "error: --until=2020-01-01T00:00:00Z: that is not in the future"},
		{"freeze --until 4h", "error: --reason is required, in one line: restarts and pools that are held back show it"},
		{"freeze --until 4h --reason " + strings.Repeat("x", 257), "error: --reason: at most 256 characters, got 257"},
		{"freeze --until 4h --from 5h --reason x", "error: --from=5h: that is not before --until=4h"},
		{"freeze --until 4h --reason x --name A_b", "error: --name=A_b: lower-case letters, digits, '-' and '.', beginning and ending with a letter or digit"},
		{"freeze --until 4h --reason x -n a,B", `error: -n a,B: "B" is not the name of a namespace; for several write a,b`},
		{"freeze --until 4h --reason x --dry-run=client", "error: --dry-run=client: write none or server"},
		{"freeze --until 4h --reason x web", `error: unknown command "web" for "kubectl tide freeze": see kubectl tide freeze --help`},
		{"thaw a b", "error: kubectl tide thaw takes one NAME at most, got 2: see kubectl tide thaw --help"},
		{"thaw pod/a", `error: "pod/a" is not a Freeze: write NAME or freeze/NAME`},
	} {
		got := command{args: strings.Fields(tt.args), kubeconfig: "/does/not/exist"}.run(t)
		if got.code != 1 || !strings.HasPrefix(got.stderr, tt.want) || strings.Count(got.stderr, "\n") != 1 || got.stdout != "" {
			t.Errorf("kubectl tide %s: exit code %d\n%s%swant 1 and\n%s", tt.args, got.code, got.stdout, got.stderr, tt.want)
		}
	}
}

// TestFreezeNeedsTheRight checks that the plugin has only its user's rights.
func TestFreezeNeedsTheRight(t *testing.T) {
	noRights := cluster.UserKubeconfig(t, "dev")
	f := &tidekeeperv1.Freeze{
		ObjectMeta: metav1.ObjectMeta{Name: "kept"},
		Spec:       tidekeeperv1.FreezeSpec{Until: metav1.Time{Time: time.Now().Add(time.Hour)}, Reason: "kept"},
	}
	cluster.Apply(t, f)
	for _, args := range []string{"freeze --until 4h --reason x", "thaw kept", "thaw"} {
		got := command{args: strings.Fields(args), kubeconfig: noRights}.run(t)
		if got.code != 5 || !strings.HasPrefix(got.stderr, "error: freezes.tidekeeper.dev") || !strings.Contains(got.stderr, "is forbidden") {
			t.Errorf("kubectl tide %s: exit code %d\n%s%s", args, got.code, got.stdout, got.stderr)
		}
	}
	framework.Eventually(t, "it is still there", func() error { cluster.Refresh(t, f); return nil })
}
