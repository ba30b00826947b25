// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tidekeeper.dev/tidekeeper/test/framework"
)

// TestWatchGoesOnAfterAPassingRefusal checks that -w retries while an API server that has just
// started does not know all roles and kinds yet.
func TestWatchGoesOnAfterAPassingRefusal(t *testing.T) {
	proxy := cluster.StartProxy(t, "")
	aNamespace(t, "refusal")
	pool := framework.Pool("refusal")
	cluster.Apply(t, pool)
	r := aRestart(t, "refusal", "refusal", "@daily", nil)
	pools := follow(t, command{kubeconfig: proxy.Kubeconfig, args: []string{"pools", "-w"}})
	restarts := follow(t, command{kubeconfig: proxy.Kubeconfig, args: []string{"restarts", "-n", "refusal", "-w"}})
	pools.await(t, `^refusal +Unknown +0/0 `)
	restarts.await(t, `^refusal +Deployment/refusal +@daily `)
	framework.Eventually(t, "both watch", func() error {
		open := map[string]bool{}
		for _, w := range proxy.Watches(t) {
			open[w.Resource] = true
		}
		if !open["nodepools.tidekeeper.dev"] || !open["scheduledrestarts.tidekeeper.dev"] {
			return fmt.Errorf("they watch %v", open)
		}
		return nil
	})

	proxy.Add(t, `rules:
- {name: pools, match: {verbs: [read], resources: [nodepools]}, count: {times: 2}, fault: {kind: Error, code: 403, reason: Forbidden, message: "not yet\u001b[2J"}}
- {name: restarts, match: {verbs: [read], resources: [scheduledrestarts]}, count: {times: 2}, fault: {kind: Error, code: 404, reason: NotFound}}`)
	proxy.Cut(t, "match: {resources: [nodepools, scheduledrestarts]}")
	proxy.AwaitFired(t, "pools", 2)
	proxy.AwaitFired(t, "restarts", 2)
	cluster.ChangeStatus(t, pool, func() { pool.Status.NodeCount = 7 })
	cluster.Change(t, r, func() { r.Spec.Schedule = "@hourly" })
	pools.await(t, `^refusal +Unknown +0/7 `)
	restarts.await(t, `^refusal +Deployment/refusal +@hourly `)
	said := pools.stderr.await(t, 1, `trying again$`)
	if last := said[len(said)-1]; !strings.Contains(last, "not yet[2J") || strings.Contains(last, "\x1b") {
		t.Errorf("the last line is %q, want the server's message without terminal control characters", last)
	}
	restarts.stderr.await(t, 1, `trying again$`)
	for _, f := range []*following{pools, restarts} {
		f.stderr.await(t, 1, `^connected again$`)
		if code := f.interrupt(t); code != 130 {
			t.Errorf("exit code %d after Ctrl-C, want 130", code)
		}
	}
}

// TestResumeOnABadDay resumes a schedule that was stopped by its failure limit, while faults are
// injected. Afterwards the schedule must be active, and must not be suspended.
func TestResumeOnABadDay(t *testing.T) {
	cluster.StartManager(t)
	proxy := cluster.StartProxy(t, "")
	aNamespace(t, "resume")
	// The proxy's clients act as the manager's user. Without this role, that user may not get
	// single objects.
	cluster.Apply(t, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "resume", Namespace: "resume"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: framework.ManagerNamespace, Name: framework.ManagerAccount}},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
	})
	cluster.AddNodes(t, "resume", 1)
	aDeployment(t, "resume", "web")
	r := aRestart(t, "resume", "web", "0 3 * * *", nil)
	for _, tt := range []struct {
		name, rule string
		// limit is the ScheduledRestart's failure limit before the command; left is its failure
		// limit after the command.
		limit, left int32
		code        int
		says        string
	}{
		{name: "all is well", limit: 3, left: 3},
		{name: "the highest limit", limit: 100, left: 100},
		{name: "the second write fails at first", limit: 3, left: 3,
			rule: `count: {from: 2, times: 2}, fault: {kind: Error, code: 503, reason: ServiceUnavailable}`},
		{name: "the answer to the first is lost", limit: 3, left: 3,
			rule: `count: {times: 1}, fault: {kind: LoseAnswer}`},
		{name: "the second write fails for good", limit: 3, left: 4, code: 1,
			rule: `count: {from: 2}, fault: {kind: Error, code: 500, reason: InternalError}`,
			says: `kubectl patch scheduledrestart.tidekeeper.dev/web -n resume --type=merge -p '{"spec":{"failureLimit":3}}'`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			proxy.Clear(t)
			cluster.Change(t, r, func() { r.Spec.FailureLimit = tt.limit })
			framework.Eventually(t, "the edit is observed", func() error {
				cluster.Refresh(t, r)
				return framework.ReadyIs(r.Status.Conditions, r.Generation, "Scheduled")
			})
			cluster.ChangeStatus(t, r, func() { r.Status.ConsecutiveFailures = r.Spec.FailureLimit })
			eventuallyStatus(t, "resume", "web", "FailureLimit")
			if tt.rule != "" {
				proxy.Add(t, `rules: [{name: bad, match: {verbs: [patch], resources: [scheduledrestarts], names: [web]}, `+tt.rule+`}]`)
			}
			got := command{kubeconfig: proxy.Kubeconfig, args: []string{"restarts", "resume", "web", "-n", "resume"}}.run(t)
			if got.code != tt.code || !strings.Contains(got.stderr, tt.says) {
				t.Errorf("exit code %d, want %d; stdout %q, stderr %q, want %q", got.code, tt.code, got.stdout, got.stderr, tt.says)
			}
			framework.Eventually(t, "the schedule continues", func() error {
				cluster.Refresh(t, r)
				ready := meta.FindStatusCondition(r.Status.Conditions, "Ready")
				if r.Spec.Suspend || ready == nil || ready.Status != metav1.ConditionTrue || ready.Reason != "Scheduled" {
					return fmt.Errorf("suspend %t, %+v", r.Spec.Suspend, ready)
				}
				return nil
			})
			if r.Spec.FailureLimit != tt.left {
				t.Errorf("failureLimit is %d, want %d", r.Spec.FailureLimit, tt.left)
			}
		})
	}
}
