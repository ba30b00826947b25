// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
)

// TestRestartsGates checks that kubectl tide restarts gates shows the state of each gate, and that
// a restart starts once all gates except the schedule's are open.
func TestRestartsGates(t *testing.T) {
	cluster.StartManager(t)
	cluster.AddNodes(t, "gates", 1)
	aNamespace(t, "gates")
	aDeployment(t, "gates", "web")
	r := aRestart(t, "gates", "web", "0 3 29 2 *", nil)
	eventuallyStatus(t, "gates", "web", "Scheduled")

	// closed returns the names of the closed gates, and fails the test unless the exit code agrees
	// with them.
	closed := func() []string {
		t.Helper()
		got := command{args: strings.Fields("restarts gates web -n gates -o json")}.run(t)
		var out struct {
			Starts bool
			Gates  []struct {
				Gate, Reason string
				Open         bool
			}
		}
		if err := json.Unmarshal([]byte(got.stdout), &out); err != nil || len(out.Gates) != 9 {
			t.Fatalf("%v: exit code %d\n%s%s", err, got.code, got.stdout, got.stderr)
		}
		if want := map[bool]int{true: 0, false: 2}[out.Starts]; got.code != want {
			t.Errorf("exit code %d, want %d", got.code, want)
		}
		texts := []string{fmt.Sprintf("starts: %v", out.Starts)}
		for _, g := range out.Gates {
			if !g.Open {
				texts = append(texts, g.Gate+" "+g.Reason)
			}
		}
		return texts
	}
	expect := func(when string, want ...string) {
		t.Helper()
		if diff := cmp.Diff(want, closed()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", when, diff)
		}
	}
	expect("all are open", "starts: true")
	cluster.Change(t, r, func() { r.Spec.Suspend = true })
	expect("a request does not need the schedule", "starts: true", "Schedule Suspended")

	// This window is closed at the current time, regardless of the time of day.
	opens := time.Now().UTC().Add(12 * time.Hour)
	cluster.Change(t, r, func() {
		r.Spec.Windows = []tidekeeperv1.RestartWindow{{
			Schedule: tidekeeperv1.CronExpression(fmt.Sprintf("%d %d * * *", opens.Minute(), opens.Hour())), DurationSeconds: 3600,
		}}
	})
	if out, err := cluster.Kubectl("", "-n", "gates", "rollout", "pause", "deployment/web"); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	expect("a window and a pause", "starts: false", "Schedule Suspended", "Window WindowClosed", "Health TargetPaused")

	text := command{args: strings.Fields("restarts gates deployment/web -n gates")}.run(t)
	for _, want := range []string{
		"Target     open", "no window is open; the next one opens at " + opens.Truncate(time.Minute).Format(time.RFC3339),
		"other restarts use 0 of 20 slots, and 0 of the 10 that this namespace may have", "would have to wait",
	} {
		if !strings.Contains(text.stdout, want) {
			t.Errorf("it does not say %q:\n%s", want, text.stdout)
		}
	}
	aRestart(t, "gates", "unserved", "0 3 29 2 *", func(r *tidekeeperv1.ScheduledRestart) {
		r.Spec.TargetRef = tidekeeperv1.TargetRef{APIVersion: "argoproj.io/v1alpha1", Kind: "Rollout", Name: "unserved"}
	})
	if got := (command{args: strings.Fields("restarts gates unserved -n gates -o json")}).run(t); !strings.Contains(got.stdout, "the cluster does not serve the kind Rollout") {
		t.Errorf("a kind that is not served: exit code %d\n%s%s", got.code, got.stdout, got.stderr)
	}
	if got := (command{args: strings.Fields("restarts gates missing -n gates")}).run(t); got.code != 3 || !strings.Contains(got.stderr, "missing") {
		t.Errorf("no such object: exit code %d\n%s", got.code, got.stderr)
	}
}
