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
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tidekeeper.dev/tidekeeper/test/framework"
)

// forecastTick is a scheduled time (tick) in the output of restarts forecast -o json.
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

// TestRestartsForecast checks that the human-readable forecast has a table, the missed ticks, a
// summary and the assumptions. The command simulates the restarts of all namespaces, but shows only
// one namespace. Without the right to list all namespaces, it reports that.
func TestRestartsForecast(t *testing.T) {
	// The deadline of the tick is in the day of the forecast, at whatever time the test runs.
	at := time.Now().UTC().Add(2 * time.Hour)
	daily, hour := fmt.Sprintf("0 %d * * *", at.Hour()), at.Format("15")+":00"
	for _, namespace := range []string{"fore-a", "fore-b"} {
		aNamespace(t, namespace)
		for _, name := range []string{"x", "y"} {
			aDeployment(t, namespace, name)
			aRestart(t, namespace, name, daily, nil)
		}
	}
	aRestart(t, "fore-b", "none", daily, nil)
	run := func(kubeconfig, args string) result {
		return command{kubeconfig: kubeconfig, args: append([]string{"restarts", "forecast"}, strings.Fields(args)...)}.run(t)
	}
	r := run("", "-n fore-a")
	if r.code != 0 || unobserved.ReplaceAllString(r.stderr, "") != "" || !strings.Contains(r.stdout, " "+hour+"        2        0         x, y\n\n2 restarts, from ") ||
		!strings.Contains(r.stdout, ". Nothing will be missed.\nAssumed: workloads stay as they are, --max-concurrent-restarts 20, --restart-namespace-share 50, --restart-slot-age 10m, 1m for 2 restarts ") {
		t.Errorf("nothing is missed: %+v\n%s", r, r.stdout)
	}
	r = run("", "-A")
	if r.code != 2 || !strings.Contains(r.stdout, "fore-a/x, fore-a/y, fore-b/x, fore-b/y") ||
		!strings.Contains(r.stdout, "1       Missed/TargetNotFound   not started before the deadline: there is no Deployment none in this namespace   fore-b/none\n") {
		t.Errorf("one is missed: exit code %d, %s\n%s", r.code, r.stderr, r.stdout)
	}
	// With a single slot, the other namespace's restarts come first.
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
