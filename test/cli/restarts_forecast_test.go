// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/test/framework"
)

// forecastTick is a tick as restarts forecast -o json has it.
type forecastTick struct {
	Name, Outcome, Reason, Message string
	Tick, Start, Completion        time.Time
}

type forecastJSON struct {
	Summary             struct{ Started, Missed, Skipped int }
	Started, NotStarted []forecastTick
	Settings            map[string]int
	Defaults            []string
	Partial             bool
}

func forecastOf(t *testing.T, r result) forecastJSON {
	t.Helper()
	var f forecastJSON
	if err := json.Unmarshal([]byte(r.stdout), &f); err != nil {
		t.Fatalf("%v: exit code %d\n%s%s", err, r.code, r.stdout, r.stderr)
	}
	return f
}

// What the forecast says of the next minute happens: with one slot, and three restarts of
// which two fit between their tick and its deadline, one is missed. So is that of a paused
// Deployment.
func TestRestartsForecastComesTrue(t *testing.T) {
	cluster.StartManager(t, "--max-concurrent-restarts=1", "--restart-namespace-share=100")
	cluster.AddNodes(t, "ahead", 2)
	aNamespace(t, "ahead")
	names := []string{"a", "b", "c", "paused"}
	for _, name := range names {
		aDeployment(t, "ahead", name)
		// All new pods at once, each ready some seconds later.
		patch := `{"spec":{"strategy":{"rollingUpdate":{"maxSurge":"100%"}},"template":{"metadata":{"annotations":{"sandbox.tidekeeper.dev/containers-ready-after":"14s"}}}}}`
		if out, err := cluster.Kubectl("", "-n", "ahead", "patch", "deployment", name, "-p", patch); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	for _, name := range names {
		if out, err := cluster.Kubectl("", "-n", "ahead", "rollout", "status", "deployment/"+name, "--timeout=60s"); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	paused := &appsv1.Deployment{}
	if err := cluster.Get(t.Context(), client.ObjectKey{Namespace: "ahead", Name: "paused"}, paused); err != nil {
		t.Fatal(err)
	}
	cluster.Change(t, paused, func() { paused.Spec.Paused = true })
	tick := time.Now().Add(15 * time.Second).Truncate(time.Minute).Add(time.Minute).UTC()
	all := map[string]*tidekeeperv1.ScheduledRestart{}
	for _, name := range names {
		all[name] = aRestart(t, "ahead", name, fmt.Sprintf("%d %d * * *", tick.Minute(), tick.Hour()), func(r *tidekeeperv1.ScheduledRestart) {
			r.Spec.StartingDeadlineSeconds = 24
		})
		eventuallyStatus(t, "ahead", name, "Scheduled")
	}

	r := command{args: strings.Fields("restarts forecast -n ahead --for 2m -o json --assume-duration 15s --max-concurrent-restarts 1 --restart-namespace-share 100")}.run(t)
	f := forecastOf(t, r)
	if r.code != 2 || f.Summary.Started != 2 || f.Summary.Missed != 2 || f.Partial {
		t.Fatalf("exit code %d: %+v\n%s", r.code, f, r.stderr)
	}
	if diff := cmp.Diff(map[string]int{"maxConcurrentRestarts": 1, "restartNamespaceShare": 100, "restartSlotAgeSeconds": 600, "assumeDurationSeconds": 15}, f.Settings); diff != "" || !slices.Equal(f.Defaults, []string{"restart-slot-age"}) {
		t.Errorf("the settings, defaults %q (-want +got):\n%s", f.Defaults, diff)
	}

	var starts []time.Time
	got := map[string]int{}
	framework.EventuallyWithin(t, 3*time.Minute, "all ticks are decided", func() error {
		starts, got = nil, map[string]int{}
		for name, restart := range all {
			cluster.Refresh(t, restart)
			if len(restart.Status.History) != 1 {
				return fmt.Errorf("%s has %d records", name, len(restart.Status.History))
			}
			record := restart.Status.History[0]
			got[fmt.Sprintf("%s %s", record.Outcome, record.Reason)]++
			if record.StartedTime != nil {
				starts = append(starts, record.StartedTime.UTC())
			}
		}
		return nil
	})
	if diff := cmp.Diff(map[string]int{"Succeeded ": 2, "Missed BudgetExhausted": 1, "Missed TargetPaused": 1}, got); diff != "" {
		t.Errorf("what happened (-want +got):\n%s", diff)
	}
	want := map[string]int{}
	for _, tick := range slices.Concat(f.Started, f.NotStarted) {
		want[fmt.Sprintf("%s %s", tick.Outcome, tick.Reason)]++
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-forecast +what happened):\n%s", diff)
	}
	// Which of those of an instant is first cannot be known, but when they start.
	slices.SortFunc(starts, time.Time.Compare)
	for i, start := range starts {
		if late := start.Sub(f.Started[i].Start).Abs(); late > 9*time.Second {
			t.Errorf("restart %d started at %s, and was forecast for %s", i, start, f.Started[i].Start)
		}
	}
	message := func(ticks []forecastTick) string {
		return ticks[slices.IndexFunc(ticks, func(t forecastTick) bool { return t.Name == "paused" })].Message
	}
	if want, got := message(f.NotStarted), all["paused"].Status.History[0].Message; want != got {
		t.Errorf("the record says %q, the forecast %q", got, want)
	}
}

// The forecast for people has a table, what is missed, a summary and what is assumed. It plays
// all namespaces, and shows one; without the right to list them all, it says so.
func TestRestartsForecast(t *testing.T) {
	for _, namespace := range []string{"fore-a", "fore-b"} {
		aNamespace(t, namespace)
		for _, name := range []string{"x", "y"} {
			aDeployment(t, namespace, name)
			aRestart(t, namespace, name, "0 3 * * *", nil)
		}
	}
	aRestart(t, "fore-b", "none", "0 3 * * *", nil)
	run := func(kubeconfig, args string) result {
		return command{kubeconfig: kubeconfig, args: append([]string{"restarts", "forecast"}, strings.Fields(args)...)}.run(t)
	}
	r := run("", "-n fore-a")
	if r.code != 0 || r.stderr != "" || !strings.Contains(r.stdout, " 03:00        2        0         x, y\n\n2 restarts, from ") ||
		!strings.Contains(r.stdout, ". Nothing will be missed.\nAssumed: workloads stay as they are, --max-concurrent-restarts 20, --restart-namespace-share 50, --restart-slot-age 10m, 1m for 2 restarts ") {
		t.Errorf("nothing is missed: %+v\n%s", r, r.stdout)
	}
	r = run("", "-A")
	if r.code != 2 || !strings.Contains(r.stdout, "fore-a/x, fore-a/y, fore-b/x, fore-b/y") ||
		!strings.Contains(r.stdout, "1       Missed/TargetNotFound   not started before the deadline: there is no Deployment none in this namespace   fore-b/none\n") {
		t.Errorf("one is missed: exit code %d, %s\n%s", r.code, r.stderr, r.stdout)
	}
	// With one slot, those of the other namespace come first.
	r = run("", "-n fore-b --max-concurrent-restarts 1 -o json")
	var got []string
	for _, tick := range forecastOf(t, r).Started {
		got = append(got, tick.Name+tick.Start.Sub(tick.Tick).String())
	}
	if diff := cmp.Diff([]string{"x2m2s", "y3m3s"}, got); diff != "" {
		t.Errorf("with one slot (-want +got):\n%s", diff)
	}

	cluster.Apply(t, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "forecaster", Namespace: "fore-b"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: "forecaster"}},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "view"},
	})
	limited := cluster.UserKubeconfig(t, "forecaster")
	framework.Eventually(t, "the rights are in force", func() error {
		r := run(limited, "-n fore-b --max-concurrent-restarts 1 -o json")
		if !strings.Contains(r.stderr, "note: you may not list the ScheduledRestarts of all namespaces: restarts elsewhere are not counted\n") {
			return fmt.Errorf("exit code %d: %s", r.code, r.stderr)
		}
		f := forecastOf(t, r)
		if !f.Partial || len(f.Started) != 2 || f.Started[1].Start.Sub(f.Started[1].Tick) != 61*time.Second {
			return fmt.Errorf("%+v", f)
		}
		return nil
	})
	if r := run(limited, "-A"); r.code != 5 {
		t.Errorf("-A without the right to: %+v", r)
	}
}
