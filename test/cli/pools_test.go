// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/test/framework"
)

const big = `
apiVersion: v1
kind: Pod
metadata: {name: big}
spec:
  nodeName: pools-2
  containers: [{name: app, image: "example.com/app:1", resources: {requests: {cpu: "8", memory: 16Gi}}}]
`

// TestPools checks the table of pools with and without a terminal, the description of a pool, and
// the changes that -w prints.
func TestPools(t *testing.T) {
	cluster.StartManager(t, "--status-interval=1s")
	cluster.AddNodes(t, "pools", 2, "--labels", "node-role.kubernetes.io/worker=")
	pool := framework.Pool("worker")
	pool.Spec.Labels = map[string]tidekeeperv1.LabelValue{"example.com/pool": "worker"}
	cluster.Apply(t, pool)
	if out, err := cluster.Kubectl(big, "apply", "-f", "-"); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Cleanup(func() {
		_, _ = cluster.Kubectl("", "delete", "pod", "big", "--grace-period=0", "--force", "--ignore-not-found")
	})
	framework.Eventually(t, "the pool has its utilization", func() error {
		return diff("worker Healthy 2/2 25% 12%", strings.Join(fields(tide(t, "pools"))[1][:5], " "))
	})

	if diff := cmp.Diff(strings.Fields("NAME STATUS READY CPU MEMORY PODS CONFLICTS AGE"), fields(tide(t, "pools"))[0]); diff != "" {
		t.Errorf("columns (-want +got):\n%s", diff)
	}
	shown := command{args: []string{"pools"}}.runOn(t, 100)
	if !strings.Contains(shown.stdout, "\x1b[32mHealthy\x1b[0m") || !strings.Contains(shown.stdout, "██▌·······  25%   █▎········  12%") {
		t.Errorf("on a terminal:\n%s", shown.stdout)
	}
	if narrow := (command{args: []string{"pools"}, env: []string{"NO_COLOR=1"}}).runOn(t, 70); strings.ContainsAny(narrow.stdout, "█·\x1b") || !strings.Contains(narrow.stdout, " 25% ") {
		t.Errorf("on a narrow terminal:\n%s", narrow.stdout)
	}
	if got := tide(t, "pools", "-o", "name"); got != "nodepool.tidekeeper.dev/worker\n" {
		t.Errorf("-o name: %q", got)
	}
	var list tidekeeperv1.NodePoolList
	if err := json.Unmarshal([]byte(tide(t, "pools", "-o", "json")), &list); err != nil || len(list.Items) != 1 || list.Items[0].Status.RequestedPercent["cpu"] != 25 {
		t.Errorf("-o json: %+v, %v", list.Items, err)
	}

	described := tide(t, "pools", "describe", "worker")
	for _, want := range []string{
		`(?m)^Status: +Healthy, 2 nodes are Ready and match the pool's spec$`, `(?m)^Members: +nodes with node-role.kubernetes.io/worker$`,
		`(?m)^Requested: +cpu +25%   8 of 32$`, `(?m)^Asks for: +label example.com/pool=worker$`,
		`\npools-2 +yes +50% +25% +\d+% +-\npools-1 +yes +0% +0% +\d+% +-\n`,
	} {
		if !regexp.MustCompile(want).MatchString(described) {
			t.Errorf("describe has no %s:\n%s", want, described)
		}
	}
	framework.Eventually(t, "the events are shown", func() error {
		return diff(true, strings.Contains(tide(t, "pools", "describe", "worker"), " SettingsApplied "))
	})

	// -w prints a line for each change, and exits cleanly on Ctrl-C.
	w := follow(t, command{args: []string{"pools", "-w"}})
	w.await(t, `^worker +Healthy +2/2 +25% `)
	if out, err := cluster.Kubectl("", "delete", "pod", "big", "--grace-period=0", "--force"); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	w.await(t, `^worker +Healthy +2/2 +0% `)
	if got := w.interrupt(t); got != 130 {
		t.Errorf("after Ctrl-C, pools -w ends with %d, want 130", got)
	}
}

func TestPoolsErrors(t *testing.T) {
	noRights := cluster.UserKubeconfig(t, "dev")
	for args, want := range map[string]result{
		"pools describe none":            {code: 3, stderr: "error: there is no NodePool \"none\"\n"},
		"pools -w -o json":               {code: 1, stderr: "error: -w only prints tables: kubectl get nodepools -w -o json follows the objects\n"},
		"pools":                          {stderr: "There are no node pools.\n"},
		"pools --kubeconfig " + noRights: {code: 5, stderr: "error: nodepools.tidekeeper.dev is forbidden: User \"dev\" cannot list resource \"nodepools\" in API group \"tidekeeper.dev\" at the cluster scope: see kubectl tide check, and SECURITY.md for the roles\n"},
		"pools descibe":                  {code: 1, stderr: "error: unknown command \"descibe\" for \"kubectl tide pools\": did you mean describe?\n"},
		"pools describe":                 {code: 1, stderr: "error: kubectl tide pools describe requires at least one NAME: see kubectl tide pools describe --help\n"},
	} {
		if err := diff(want, command{args: strings.Fields(args)}.run(t)); err != nil {
			t.Errorf("kubectl tide %s %v", args, err)
		}
	}
}
