// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/maintenance/forecast"
	"tidekeeper.dev/tidekeeper/internal/view"
	"tidekeeper.dev/tidekeeper/test/framework"
)

// aMaintenance creates a NodeMaintenance of the nodes prefix-1 to prefix-6, two at a time.
func aMaintenance(t *testing.T, name, prefix string) *tidekeeperv1.NodeMaintenance {
	t.Helper()
	m := &tidekeeperv1.NodeMaintenance{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"team": prefix}}}
	m.Spec.Until, m.Spec.MaxUnavailable, m.Spec.FailureLimit = tidekeeperv1.UntilRebooted, &intstr.IntOrString{IntVal: 2}, 2
	for i := range 6 {
		m.Spec.Nodes.Names = append(m.Spec.Nodes.Names, fmt.Sprintf("%s-%d", prefix, i+1))
	}
	cluster.Apply(t, m)
	return m
}

// underway writes the status of a round in which a node took 15 minutes, another has failed, one is
// drained and one is being drained. Two more nodes wait.
func underway(t *testing.T, m *tidekeeperv1.NodeMaintenance, prefix string) {
	t.Helper()
	ago := func(minutes int) metav1.Time {
		return metav1.NewTime(time.Now().Add(-time.Duration(minutes) * time.Minute).Truncate(time.Second))
	}
	began := ago(60)
	progress := func(phase tidekeeperv1.NodePhase, start, since int, reason, message string) tidekeeperv1.NodeProgress {
		return tidekeeperv1.NodeProgress{UID: types.UID(prefix), Phase: phase, StartTime: ago(start), Since: ago(since), Cordoned: true, Reason: reason, Message: message}
	}
	cluster.ChangeStatus(t, m, func() {
		m.Status = tidekeeperv1.NodeMaintenanceStatus{
			ObservedGeneration: m.Generation, RoundTime: &began, Selected: 6, Done: 1, Running: 2, Failed: 1,
			Nodes: map[string]tidekeeperv1.NodeProgress{
				prefix + "-1": progress(tidekeeperv1.NodeDone, 60, 45, "", ""),
				prefix + "-2": progress(tidekeeperv1.NodeFailed, 60, 30, "DrainTimeout", "not empty after 30m"),
				prefix + "-3": progress(tidekeeperv1.NodeDrained, 30, 5, "", ""),
				prefix + "-4": progress(tidekeeperv1.NodeDraining, 10, 10, "Budget", "1 pod waits for a budget"),
			},
			Conditions: []metav1.Condition{{
				Type: tidekeeperv1.ConditionReady, Status: metav1.ConditionTrue, Reason: "InProgress", Message: "2 nodes are being maintained",
				ObservedGeneration: m.Generation, LastTransitionTime: began,
			}},
		}
	})
}

// describedNodes returns the phase and reason of each node, as maintenance describe -o json prints
// them.
func describedNodes(t *testing.T, name string) map[string]string {
	t.Helper()
	var detail view.MaintenanceDetail
	if out := tide(t, "maintenance", "describe", name, "-o", "json"); json.Unmarshal([]byte(out), &detail) != nil {
		t.Fatal(out)
	}
	nodes := map[string]string{}
	for _, n := range detail.Members {
		nodes[n.Name] = strings.TrimSpace(string(n.Phase) + " " + n.Reason)
	}
	return nodes
}

// TestMaintenance checks the list, the description, the forecast, and suspending, from a status that
// the test writes.
func TestMaintenance(t *testing.T) {
	cluster.AddNodes(t, "maint", 6)
	m := aMaintenance(t, "reboot", "maint")
	row := func(args ...string) string {
		return strings.Join(fields(tide(t, append([]string{"maint", "-l", "team=maint", "--no-headers"}, args...)...))[0], " ")
	}
	if got := row(); got != "reboot Unknown - - - - -" {
		t.Errorf("before a manager has looked at it: %s", got)
	}
	underway(t, m, "maint")
	if got := row(); got != "reboot InProgress 6 1 2 1 -" {
		t.Errorf("the row is %s", got)
	}
	if got := row("-o", "wide"); !strings.HasSuffix(got, "2 nodes are being maintained") || !strings.Contains(got, " Rebooted ") {
		t.Errorf("the wide row is %s", got)
	}
	for format, want := range map[string]string{
		"name": "nodemaintenance.tidekeeper.dev/reboot\n", "custom-columns=N:.metadata.name,DONE:.status.done": "N        DONE\nreboot   1\n",
		"jsonpath={.items[0].spec.maxUnavailable}": "2",
	} {
		if got := tide(t, "maintenance", "reboot", "-o", format); got != want {
			t.Errorf("-o %s: %q, want %q", format, got, want)
		}
	}

	shown := tide(t, "maintenance", "describe", "reboot")
	for _, want := range []string{
		`(?m)^Selects: +maint-1, maint-2,`, `(?m)^Limit: +2 nodes at a time$`, `(?m)^Round: .*: 1 of 6 nodes done, 2 running, 1 failed$`,
		`(?m)^maint-2 +Failed +30m +DrainTimeout +not empty after 30m`,
		`(?m)^maint-3 +Drained +5m\d*s* .*reboot the machine, or: kubectl tide maintenance done maint-3$`,
		`(?m)^maint-4 +Draining +10m +Budget +1 pod waits for a budget +see kubectl tide pools blockers --node maint-4$`,
		`(?m)^maint-5 +Waiting +- +MaxUnavailable +at most 2 nodes may be unavailable: maint-3, maint-4`,
	} {
		if !regexp.MustCompile(want).MatchString(shown) {
			t.Errorf("the description does not match %s:\n%s", want, shown)
		}
	}

	waits := func(what, reason string) {
		t.Helper()
		framework.Eventually(t, what, func() error { return diff("Waiting "+reason, describedNodes(t, "reboot")["maint-6"]) })
	}
	f := &tidekeeperv1.Freeze{ObjectMeta: metav1.ObjectMeta{Name: "maint"}, Spec: tidekeeperv1.FreezeSpec{Until: metav1.NewTime(time.Now().Add(time.Hour)), Reason: "test"}}
	cluster.Apply(t, f)
	waits("a freeze is in force", "Frozen")
	cluster.Delete(t, f)
	cluster.Change(t, m, func() {
		m.Spec.Windows = []tidekeeperv1.RestartWindow{{Schedule: tidekeeperv1.CronExpression(fmt.Sprintf("0 %d * * *", time.Now().UTC().Add(12*time.Hour).Hour())), DurationSeconds: 3600}}
	})
	waits("the window is closed", "WindowClosed")

	for _, step := range []struct{ args, want string }{
		{"maintenance suspend reboot --dry-run=server", "nodemaintenance.tidekeeper.dev/reboot suspended; the drain of 1 node stops where it is, 1 node will be put back into use once the maintenance is done (server dry run)\n"},
		{"maintenance suspend nodemaintenance/reboot", "nodemaintenance.tidekeeper.dev/reboot suspended; the drain of 1 node stops where it is, 1 node will be put back into use once the maintenance is done\n"},
		{"maintenance suspend -l team=maint", "nodemaintenance.tidekeeper.dev/reboot is already suspended\n"},
	} {
		if got := tide(t, strings.Fields(step.args)...); got != step.want {
			t.Errorf("kubectl tide %s: %q, want %q", step.args, got, step.want)
		}
	}
	if cluster.Refresh(t, m); !m.Spec.Suspend {
		t.Error("it is not suspended")
	}
	waits("it is suspended", "Suspended")
	if got := tide(t, "maintenance", "resume", "reboot"); got != "nodemaintenance.tidekeeper.dev/reboot resumed\n" {
		t.Errorf("resume: %q", got)
	}
	waits("it is resumed", "WindowClosed")

	followed := follow(t, command{args: []string{"maintenance", "-w", "-l", "team=maint"}})
	followed.await(t, `^reboot +InProgress +6 +1 +2 +1 `)
	cluster.ChangeStatus(t, m, func() { m.Status.Done = 2 })
	followed.await(t, `^reboot +InProgress +6 +2 +2 +1 `)
}

// TestMaintenanceForecast checks that the forecast takes the measured time of the nodes that are done,
// or that of the flag, and that the exit code is 2 if a round is not through before the next one.
func TestMaintenanceForecast(t *testing.T) {
	cluster.AddNodes(t, "foretell", 6)
	m := aMaintenance(t, "foretell", "foretell")
	of := func(code int, args ...string) (f struct {
		forecast.Forecast
		PerNodeSeconds int64
		MeasuredNodes  int
		Unavailable    []string
	}) {
		t.Helper()
		r := command{args: append([]string{"maintenance", "forecast", "foretell", "-o", "json"}, args...)}.run(t)
		if err := json.Unmarshal([]byte(strings.Trim(strings.TrimSpace(r.stdout), "[]")), &f); err != nil || r.code != code {
			t.Fatalf("exit code %d, want %d; %v\n%s%s", r.code, code, err, r.stdout, r.stderr)
		}
		return f
	}
	// inAbout reports whether a time was the given duration ahead, to half a minute, at some moment
	// since `began`.
	inAbout := func(end *time.Time, began time.Time, ahead time.Duration) bool {
		const slack = 30 * time.Second
		return end != nil && !end.Before(began.Add(ahead-slack)) && !end.After(time.Now().Add(ahead+slack))
	}
	if f := of(0); f.Left != 6 || f.End != nil || f.MeasuredNodes != 0 || f.NextDrain == nil {
		t.Errorf("before the first node is done: %+v", f)
	}
	now := time.Now()
	if f := of(0, "--per-node", "10m"); !inAbout(f.End, now, 30*time.Minute) {
		t.Errorf("six nodes of ten minutes, two at a time: %+v", f)
	}
	now = time.Now()
	underway(t, m, "foretell")
	// The drained node is overdue. The other one has five minutes left, and then each place takes a
	// node of 15 minutes.
	if f := of(0); f.Left != 4 || f.PerNodeSeconds != 900 || f.MeasuredNodes != 1 || !inAbout(f.End, now, 20*time.Minute) {
		t.Errorf("in the middle of a round: %+v", f)
	}
	cluster.Change(t, m, func() { m.Spec.Schedule = "@hourly" })
	f := of(2, "--per-node", "10h")
	if !f.Late || f.NextRound == nil {
		t.Errorf("nodes of ten hours, and a round each hour: %+v", f)
	}
	r := command{args: []string{"maintenance", "forecast", "foretell", "--per-node", "10h"}}.run(t)
	for _, want := range []string{"foretell: 4 nodes left in this round, 2 at a time, 10h each, as --per-node says\n", "\nNext drain: ", "\nEnd:        ", "\nNot through before the next round, which the schedule begins "} {
		if r.code != 2 || !strings.Contains(r.stdout, want) {
			t.Errorf("exit code %d, want 2 and %q:\n%s%s", r.code, want, r.stdout, r.stderr)
		}
	}
}

// TestMaintenanceDone checks that done removes the annotation of drained nodes, and that it changes
// nothing if a node is not drained.
func TestMaintenanceDone(t *testing.T) {
	cluster.AddNodes(t, "over", 3)
	drained := func(name string) bool {
		node := framework.Node(name)
		cluster.Refresh(t, node)
		_, ok := node.Annotations[tidekeeperv1.DrainedForMaintenanceAnnotation]
		return ok
	}
	says := func(args string, code int, want string) {
		t.Helper()
		r := command{args: append([]string{"maintenance", "done"}, strings.Fields(args)...)}.run(t)
		if r.code != code || !strings.HasPrefix(r.stdout+r.stderr, want) || code != 0 && strings.Count(r.stderr, "\n") != 1 {
			t.Errorf("done %s: exit code %d, want %d\n%s%swant %s", args, r.code, code, r.stdout, r.stderr, want)
		}
	}
	cluster.MustKubectl(t, "", "annotate", "node", "over-1", "over-2", tidekeeperv1.DrainedForMaintenanceAnnotation+"=reboot")
	cluster.MustKubectl(t, "", "annotate", "node", "over-3", tidekeeperv1.CordonedForMaintenanceAnnotation+"=uid")
	says("over-1 over-3", 1, `error: node "over-3" is not drained for maintenance: it is cordoned for one`)
	says("over-1 node-1", 1, `error: node "node-1" is not drained for maintenance: nothing to end`)
	says("over-1 over-9", 3, `error: there is no Node "over-9"`)
	says("over-1 --dry-run=server", 0, "node/over-1: the maintenance reboot of it is done; it is put back into use once it is ready (server dry run)\n")
	if !drained("over-1") || !drained("over-2") {
		t.Error("the annotation was removed, although nothing was to be changed")
	}
	eventuallyCompletes(t, func(got string) bool { return got == "over-2\tdrained for reboot\n:4\n" }, "maintenance", "done", "over-1", "")
	eventuallyCompletes(t, func(got string) bool { return strings.Contains(got, "over-2\tdrained for reboot\nover-3\n") }, "pools", "node-template", "over-1", "")
	says("over-1 node/over-2", 0, "node/over-1: the maintenance reboot of it is done; it is put back into use once it is ready\nnode/over-2: ")
	if drained("over-1") || drained("over-2") {
		t.Error("the annotation is still there")
	}
}

// TestMaintenanceWithoutTheController checks that commands report a leader that does not run the
// controller, and that kubectl tide check then fails.
func TestMaintenanceWithoutTheController(t *testing.T) {
	m := aMaintenance(t, "nobodys", "nobodys")
	cluster.StartManager(t, append(cluster.ElectUntilReleased(t), "--controllers=nodepool,scheduled-restart")...)
	const note = "note: the controller node-maintenance does not run (add it to --controllers of the manager, such as --controllers=*,node-maintenance): no node is drained, and none is put back into use, until it does\n"
	for _, args := range []string{"maintenance", "maintenance describe nobodys", "maintenance forecast nobodys", "maintenance suspend nobodys"} {
		framework.Eventually(t, "kubectl tide "+args, func() error {
			r := command{args: strings.Fields(args)}.run(t)
			return diff(result{stderr: note}, result{code: r.code, stderr: r.stderr})
		})
	}
	found, code := checks(t, command{args: []string{"check"}})
	if want := "failed: the controller node-maintenance does not run (add it to --controllers of the manager, such as --controllers=*,node-maintenance), and there are NodeMaintenances"; code != 1 || found["nodemaintenances"] != want {
		t.Errorf("exit code %d, %q; want %q", code, found["nodemaintenances"], want)
	}
	cluster.Delete(t, m)
	framework.Eventually(t, "without objects there is nothing to report", func() error {
		found, _ := checks(t, command{args: []string{"check"}})
		return diff("ok: there are none", found["nodemaintenances"])
	})
}

// TestMaintenanceNeedsTheRights checks that the plugin has only its user's rights, and says which are
// missing.
func TestMaintenanceNeedsTheRights(t *testing.T) {
	aMaintenance(t, "guarded", "guarded")
	noRights := cluster.UserKubeconfig(t, "dev")
	for args, want := range map[string]string{
		"maintenance": "nodemaintenances.tidekeeper.dev is forbidden", "maintenance describe guarded": `nodemaintenances.tidekeeper.dev "guarded" is forbidden`,
		"maintenance forecast": "nodemaintenances.tidekeeper.dev is forbidden", "maintenance suspend guarded": "nodemaintenances.tidekeeper.dev is forbidden",
		"maintenance done node-1": `nodes "node-1" is forbidden`,
	} {
		r := command{args: strings.Fields(args), kubeconfig: noRights}.run(t)
		if r.code != 5 || !strings.HasPrefix(r.stderr, "error: "+want) || strings.Count(r.stderr, "\n") != 1 {
			t.Errorf("kubectl tide %s: exit code %d\n%s%s", args, r.code, r.stdout, r.stderr)
		}
	}
}
