// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/test/framework"
)

// TestRestartOnceWhereverItDies stops the manager between any two writes of a restart: the API
// server rejects the second write, and then the manager is killed. The next manager must complete
// the restart, which must happen exactly once.
func TestRestartOnceWhereverItDies(t *testing.T) {
	cluster.AddNodes(t, "once", 1)
	for _, tt := range []struct {
		name, resource, group string
		// allowed is a CEL expression. The API server still accepts the writes for which it is
		// true.
		allowed string
	}{
		{"before the claim", "scheduledrestarts/status", "tidekeeper.dev", "!has(object.status.active)"},
		{"between the claim and the patch", "deployments", "apps",
			"!('kubectl.kubernetes.io/restartedAt' in object.spec.template.metadata.?annotations.orValue({}))"},
		{"between the patch and the end", "scheduledrestarts/status", "tidekeeper.dev", "!(has(oldObject.status.active) && !has(object.status.active))"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			name := "once-" + strings.Fields(tt.name)[len(strings.Fields(tt.name))-1]
			d := workload(t, "Deployment", name).(*appsv1.Deployment)
			generation := d.Generation
			manager := cluster.StartManager(t)
			r := restartOf("Deployment", name)
			cluster.Apply(t, r)
			eventuallyRestartIs(t, r, "Suspended")
			lift := refuse(t, name, tt.group, tt.resource, tt.allowed)

			tick := request(t, r)
			framework.Eventually(t, "the write is refused", func() error {
				if !strings.Contains(manager.Log(), "refused in this test") {
					return errors.New("not yet")
				}
				return nil
			})
			manager.Kill(t)
			lift()

			cluster.StartManager(t)
			eventuallyOutcome(t, r, tick, tidekeeperv1.OutcomeSucceeded, "")
			cluster.Refresh(t, d)
			if d.Generation != generation+1 || len(r.Status.History) != 1 {
				t.Errorf("the Deployment was changed %d times, and the history is %+v; want one restart", d.Generation-generation, r.Status.History)
			}
		})
	}
}

// probe is a time that [refuse] writes to the object, to check whether its policy is in force: the
// policy rejects it.
const probe = "1970-01-01T00:00:00Z"

// refuse makes the API server reject writes to the named object unless the CEL expression `allowed`
// holds, and returns a function that ends this.
func refuse(t *testing.T, name, group, resource, allowed string) (lift func()) {
	t.Helper()
	if group == "tidekeeper.dev" {
		allowed = fmt.Sprintf("object.status.?lastRequestTime.orValue('') != '%s' && %s", probe, allowed)
	}
	_, err := cluster.Kubectl(fmt.Sprintf(`
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: %[1]s}
spec:
  matchConstraints:
    resourceRules: [{apiGroups: [%[2]q], apiVersions: [v1], operations: [UPDATE], resources: [%[3]q]}]
  matchConditions: [{name: this, expression: "object.metadata.name == '%[1]s'"}]
  validations: [{expression: %[4]q, message: refused in this test}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: %[1]s}
spec: {policyName: %[1]s, validationActions: [Deny]}
`, name, group, resource, allowed), "apply", "-f", "-")
	if err != nil {
		t.Fatal(err)
	}
	lifted := false
	lift = func() {
		if lifted {
			return
		}
		lifted = true
		if out, err := cluster.Kubectl("", "delete", "validatingadmissionpolicy,validatingadmissionpolicybinding", name); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
	}
	t.Cleanup(lift)
	// The API server enforces a new policy with a short delay.
	framework.Eventually(t, "the policy is in force", func() error {
		args := []string{"patch", "deployment", name, "-p", `{"spec":{"template":{"metadata":{"annotations":{"kubectl.kubernetes.io/restartedAt":"` + probe + `"}}}}}`}
		if group == "tidekeeper.dev" {
			args = []string{"patch", "scheduledrestart", name, "--subresource=status", "-p", `{"status":{"lastRequestTime":"` + probe + `"}}`}
		}
		out, err := cluster.Kubectl("", append(args, "--dry-run=server", "--type=merge")...)
		if err == nil || !strings.Contains(out, "refused in this test") {
			return fmt.Errorf("it is not: %s", out)
		}
		return nil
	})
	return lift
}

// TestRestartOnceAtFailover kills the leader of two managers when a tick is due, and checks that
// the tick runs exactly once.
func TestRestartOnceAtFailover(t *testing.T) {
	elect := cluster.ElectUntilReleased(t)
	cluster.AddNodes(t, "failover", 1)
	d := workload(t, "Deployment", "failover").(*appsv1.Deployment)
	generation := d.Generation
	r := restartOf("Deployment", "failover")
	leader := cluster.StartManager(t, elect...)
	holder := eventuallyLeader(t, "")
	cluster.Apply(t, r)
	eventuallyRestartIs(t, r, "Suspended")
	const rounds = 4
	for round := range rounds {
		standby := cluster.StartManager(t, elect...)
		tick := time.Now().Add(2 * time.Second).Truncate(time.Second).UTC()
		cluster.Change(t, r, func() {
			r.Annotations = map[string]string{tidekeeperv1.RestartNowAnnotation: tick.Format(time.RFC3339)}
		})
		// The leader is killed shortly before or after the tick, at a different moment in each
		// round.
		time.Sleep(time.Until(tick) + time.Duration(round*8)*time.Millisecond) // sleep: the leader is killed at any time, so there is no condition to wait for
		leader.Kill(t)
		cluster.ExpireLease(t)
		eventuallyOutcome(t, r, tick, tidekeeperv1.OutcomeSucceeded, "")
		holder = eventuallyLeader(t, holder)
		leader = standby
	}
	cluster.Refresh(t, d)
	if d.Generation != generation+rounds || len(r.Status.History) != rounds {
		t.Errorf("the Deployment was changed %d times, the history has %d records; want %d of each", d.Generation-generation, len(r.Status.History), rounds)
	}
}

// TestRestartOnceUnderKills kills the manager again and again while restarts are requested. Each
// restart must happen exactly once, or have a record that states why not. The ReplicaSets are the
// evidence.
func TestRestartOnceUnderKills(t *testing.T) {
	cluster.AddNodes(t, "kills", 1)
	if problems := restartUnderKills(t, &cluster, "kills"); len(problems) > 0 {
		t.Error(strings.Join(problems, "\n"))
	}
}

// restartUnderKills requests restarts of a separate Deployment while managers are killed, and
// returns a line for each problem in the history.
func restartUnderKills(t *testing.T, cluster *framework.Cluster, name string) (problems []string) {
	t.Helper()
	d := workload(t, "Deployment", name).(*appsv1.Deployment)
	generation := d.Generation
	r := restartOf("Deployment", name)
	cluster.Apply(t, r)

	// If a request is replaced by the next request before any manager has accepted it, it is lost.
	// Each request must therefore be accepted first. The kills come before, during and after that.
	takenIn := func(tick time.Time) bool {
		cluster.Refresh(t, r)
		return r.Status.LastRequestTime != nil && !r.Status.LastRequestTime.Time.Before(tick)
	}
	var ticks []time.Time
	for range 6 {
		tick := cluster.RequestRestart(t, r, later(time.Now(), ticks))
		ticks = append(ticks, tick)
		// For each request, the test does not wait for the first manager to be ready, so it may be
		// killed earlier.
		for kills := 0; kills < 2 || !takenIn(tick); kills++ {
			if kills > 20 {
				t.Fatalf("no manager has accepted the request of %s after %d managers: %+v", tick, kills, r.Status)
			}
			manager := cluster.LaunchManager(t)
			if kills > 0 {
				manager.AwaitReady(t)
			}
			// The delay before a kill grows with the number of kills, so that eventually a manager
			// has enough time, even on a busy machine.
			longest := 900 * max(1, kills-2)
			time.Sleep(time.Duration(rand.IntN(longest)) * time.Millisecond) // sleep: the manager is killed at a random time
			manager.Kill(t)
		}
	}
	cluster.StartManager(t)
	last := ticks[len(ticks)-1]
	eventuallyRestart(t, r, framework.Patience, "has decided the last request", func() error {
		ready := meta.FindStatusCondition(r.Status.Conditions, "Ready")
		if r.Status.LastRequestTime == nil || r.Status.LastRequestTime.Time.Before(last) || r.Status.Active != nil || ready == nil {
			return fmt.Errorf("status %+v", r.Status)
		}
		return nil
	})
	cluster.Refresh(t, d)
	restartedAt := cluster.RestartedAt(t, d)
	problems = framework.AllDecided(ticks, r.Status.History, restartedAt)
	if changed := d.Generation - generation; changed != int64(len(restartedAt)) {
		problems = append(problems, fmt.Sprintf("the template was written %d times, and bore %d times of restarts", changed, len(restartedAt)))
	}
	if len(restartedAt) == 0 {
		problems = append(problems, "nothing was restarted at all")
	}
	return problems
}

// later returns a time in whole seconds: `now`, or a time after the last tick if that is later.
func later(now time.Time, ticks []time.Time) time.Time {
	if len(ticks) > 0 && !now.Truncate(time.Second).After(ticks[len(ticks)-1]) {
		return ticks[len(ticks)-1].Add(time.Second)
	}
	return now
}
