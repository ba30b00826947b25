// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/test/framework"
)

// TestSeveralClusters checks commands that run against several clusters. A cluster that does not
// respond has a row with the reason, and does not delay the other clusters.
func TestSeveralClusters(t *testing.T) {
	kubeconfig := cluster.FleetKubeconfig(t, "fleet", "fleet-2")
	cluster.Apply(t, framework.Pool("fleet"))
	for _, namespace := range []string{"fleet", "fleet-2"} {
		aNamespace(t, namespace)
	}
	aDeploymentOf(t, "fleet", "web", 0)
	aDeploymentOf(t, "fleet-2", "api", 0)
	hour, schedule := inHalfADay()
	aRestart(t, "fleet", "web", schedule, func(r *tidekeeperv1.ScheduledRestart) { r.Spec.TimeZone = "UTC" })
	aRestart(t, "fleet-2", "api", schedule, func(r *tidekeeperv1.ScheduledRestart) { r.Spec.TimeZone = "UTC" })
	run := func(args string) result {
		t.Helper()
		return command{kubeconfig: kubeconfig, args: strings.Fields(args)}.run(t)
	}
	// Only two commands include the silent cluster. All timeouts are so long that the other clusters
	// respond even on a busy machine.
	const patient, closed, alsoSilent = " --request-timeout 2m", " --contexts here,closed,again --request-timeout 2m", " --contexts here,closed,silent,again --request-timeout 30s"
	const down = `error: closed: the cluster at http://127\.0\.0\.1:\d+ cannot be reached: connection refused(; silent: no answer within 30s)?\n$`
	const refused, silent = `closed the cluster at http://\S+ cannot be reached: connection refused`, `silent no answer within 30s`
	asJSON := make(chan result, 1)
	go func() { asJSON <- run("pools fleet -o json" + alsoSilent) }()
	// expect runs a command with --contexts, and checks the rows of its output, stderr and the exit
	// code.
	expect := func(args string, patterns ...string) {
		t.Helper()
		all := closed
		if slices.Contains(patterns, silent) {
			all = alsoSilent
		}
		r := run(args + all)
		var rows []string
		for line := range strings.Lines(r.stdout) {
			rows = append(rows, strings.Join(strings.Fields(line), " "))
		}
		for _, pattern := range patterns {
			if !slices.ContainsFunc(rows, regexp.MustCompile("^"+pattern+"$").MatchString) {
				t.Errorf("%s has no row %q:\n%s", args, pattern, r.stdout)
			}
		}
		if len(rows) != len(patterns) || r.code != 1 || !regexp.MustCompile(down).MatchString(r.stderr) {
			t.Errorf("%s: exit code %d, %d rows, want 1 and %d\n%s%s", args, r.code, len(rows), len(patterns), r.stdout, r.stderr)
		}
	}
	expect("pools fleet", "CONTEXT NAME STATUS .*", "here fleet .*", "again fleet .*", refused, silent)
	expect("restarts", "CONTEXT NAMESPACE NAME TARGET .*", "here fleet web Deployment/web .*", "again fleet-2 api Deployment/api .*", refused)
	expect("restarts -n fleet --sort-by .metadata.name", "CONTEXT NAME TARGET .*", "here web .*", "again web .*", refused)
	expect("restarts next --for 24h", `DAY TIME \(UTC\) STARTS CONTEXT HERE RESTARTS`,
		fmt.Sprintf(`\S+ \d+ \S+ %02d:00 2 here 1 fleet/web`, hour), fmt.Sprintf(`\S+ \d+ \S+ %02d:00 2 again 1 fleet-2/api`, hour), refused)

	// In machine-readable output, each object names its cluster.
	var pools struct {
		Items []struct {
			Context  string
			Metadata struct{ Name string }
		}
		Errors []struct{ Context, Error string }
	}
	r := <-asJSON
	if err := json.Unmarshal([]byte(r.stdout), &pools); err != nil || r.code != 1 {
		t.Fatalf("-o json: exit code %d, %v\n%s", r.code, err, r.stdout)
	}
	if len(pools.Items) != 2 || pools.Items[0].Context != "here" || pools.Items[1].Context != "again" || pools.Items[1].Metadata.Name != "fleet" || len(pools.Errors) != 2 || pools.Errors[1].Error != "no answer within 30s" {
		t.Errorf("-o json has %+v", pools)
	}
	if r := run("restarts -o custom-columns=C:.context,N:.metadata.name --contexts here,again" + patient); r.code != 0 || r.stdout != "C       N\nhere    web\nagain   api\n" {
		t.Errorf("columns: %+v", r)
	}
	if r := run("restarts next -o json --contexts here,again" + patient); r.code != 0 || strings.Count(r.stdout, `"context": "again"`) != 1 || strings.Count(r.stdout, `"context": "here"`) != 1 {
		t.Errorf("the calendar: %+v", r)
	}
	if r := run("pools none --contexts here" + patient); r.code != 1 || !strings.HasSuffix(r.stderr, `error: here: there is no NodePool "none"`+"\n") {
		t.Errorf("a name that no cluster has: %+v", r)
	}
}

// TestSeveralClustersAreFollowed checks that -w follows the changes in all clusters, and reports a
// cluster that does not respond once.
func TestSeveralClustersAreFollowed(t *testing.T) {
	kubeconfig := cluster.FleetKubeconfig(t, "fleet", "fleet-2")
	cluster.Apply(t, framework.Pool("followed"))
	f := follow(t, command{kubeconfig: kubeconfig, args: strings.Fields("pools followed -w --contexts here,closed,again")})
	f.await(t, `^closed +the cluster at http`)
	if out, err := cluster.Kubectl("", "patch", "nodepools.tidekeeper.dev", "followed", "--subresource=status", "--type=merge", "-p", `{"status":{"nodeCount":7,"readyNodes":6}}`); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	came := append(f.stdout.await(t, 1, `6/7`), f.stdout.await(t, 1, `6/7`)...)
	if out, err := cluster.Kubectl("", "delete", "nodepools.tidekeeper.dev", "followed"); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	came = append(came, append(f.stdout.await(t, 1, `was deleted$`), f.stdout.await(t, 1, `was deleted$`)...)...)
	for _, want := range []string{`^here +followed `, `^again +followed `, `^here: followed was deleted$`, `^again: followed was deleted$`} {
		if !slices.ContainsFunc(came, regexp.MustCompile(want).MatchString) {
			t.Errorf("it did not print %s, but\n%s", want, strings.Join(came, "\n"))
		}
	}
	if code := f.interrupt(t); code != 130 {
		t.Errorf("interrupted, the exit code is %d, want 130", code)
	}
}

// TestMistakesInContexts checks that a mistake in --contexts results in an error of one line that
// names the contexts.
func TestMistakesInContexts(t *testing.T) {
	kubeconfig := cluster.FleetKubeconfig(t, "fleet", "fleet-2")
	for args, want := range map[string]string{
		"pools --contexts here,none":                 `error: --contexts: there is no context "none": the kubeconfig has again, closed, here, `,
		"restarts --contexts here,here":              `error: --contexts: the context "here" is given twice: the kubeconfig has `,
		"restarts next --contexts=":                  "error: --contexts: write the names of contexts, such as prod,edge: the kubeconfig has ",
		"pools --contexts here,again --context here": "error: write either --contexts or --context: the kubeconfig has ",
		"pools -o name --contexts here,again":        "error: -o name does not show the cluster: ",
		"dashboard --contexts here,none":             `error: --contexts: there is no context "none": the kubeconfig has `,
	} {
		r := command{kubeconfig: kubeconfig, args: strings.Fields(args)}.run(t)
		if r.code != 1 || r.stdout != "" || !strings.HasPrefix(r.stderr, want) || strings.Count(r.stderr, "\n") != 1 {
			t.Errorf("%s: %+v, want %s", args, r, want)
		}
	}
	p := command{kubeconfig: kubeconfig}.process()
	p.Args = append([]string{p.Args[0]}, "__complete", "tide", "pools", "--contexts", "here,a")
	if out, err := p.Output(); err != nil || string(out) != "here,again\n:6\n" {
		t.Errorf("completed: %q, %v", out, err)
	}
}
