// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"fmt"
	"testing"

	"tidekeeper.dev/tidekeeper/test/framework"
)

// TestOptInSuspendedByHandLasts suspends an opt-in's schedule by hand, as in an emergency, and then
// updates the workload in every possible way. The schedule must stay suspended as long as the
// workload exists.
func TestOptInSuspendedByHandLasts(t *testing.T) {
	cluster.StartManager(t)
	const name = "optin-lasts"
	manifest := func(image string, annotated bool) string {
		annotations := ""
		if annotated {
			annotations = `, annotations: {tidekeeper.dev/scheduled-restart: "true", tidekeeper.dev/restart-schedule: "0 3 * * *"}`
		}
		return fmt.Sprintf(`
apiVersion: apps/v1
kind: Deployment
metadata: {name: %[1]s, namespace: default%[3]s}
spec:
  replicas: 0
  selector: {matchLabels: {app: %[1]s}}
  template:
    metadata: {labels: {app: %[1]s}}
    spec: {containers: [{name: app, image: "example.com/app:%[2]s"}]}
`, name, image, annotations)
	}
	kubectl := func(stdin string, args ...string) {
		t.Helper()
		if out, err := cluster.Kubectl(stdin, args...); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	t.Cleanup(func() { cluster.Delete(t, deployment(name, 0, app)) })
	// The Deployment's first revision is from before the opt-in.
	kubectl(manifest("0", false), "apply", "-f", "-")
	rolledOut(t, "Deployment", name)
	kubectl(manifest("1", true), "apply", "-f", "-")
	rolledOut(t, "Deployment", name)
	suspended := wanted{Schedule: "0 3 * * *", Suspend: true}
	o := eventuallyOptIn(t, name, wanted{Schedule: "0 3 * * *"})
	cluster.Change(t, o, func() { o.Spec.Suspend = true })

	for _, tt := range []struct {
		what  string
		stdin string
		args  []string
	}{
		{"applied", manifest("2", true), []string{"apply", "-f", "-"}},
		{"applied by the server", manifest("3", true), []string{"apply", "--server-side", "--force-conflicts", "-f", "-"}},
		// helm upgrade --force sends this request.
		{"replaced", manifest("4", true), []string{"replace", "-f", "-"}},
		{"restarted", "", []string{"rollout", "restart", "deployment/" + name}},
		{"undone", "", []string{"rollout", "undo", "deployment/" + name}},
	} {
		kubectl(tt.stdin, tt.args...)
		rolledOut(t, "Deployment", name)
		settled(t)
		if is := restartNamed(t, name); is == nil || is.UID != o.UID || diff(suspended, wantedOf(is)) != nil {
			t.Fatalf("when it was %s, the suspended schedule became %+v", tt.what, is)
		}
	}

	// As documented, the updates below recreate the ScheduledRestart.
	recreated := func(what string) {
		t.Helper()
		framework.EventuallyWithin(t, 3*framework.Patience, "it is created again when the workload was "+what, func() error {
			is := restartNamed(t, name)
			if is == nil || is.UID == o.UID {
				return errors.New("not yet")
			}
			return diff(wanted{Schedule: "0 3 * * *"}, wantedOf(is))
		})
		o = restartNamed(t, name)
	}
	kubectl(manifest("5", true), "replace", "--force", "-f", "-")
	recreated("replaced by force")
	kubectl(manifest("6", false), "replace", "-f", "-")
	eventuallyGone(t, o)
	rolledOut(t, "Deployment", name)
	kubectl(manifest("7", true), "replace", "-f", "-")
	rolledOut(t, "Deployment", name)
	o = eventuallyOptIn(t, name, wanted{Schedule: "0 3 * * *"})
	kubectl("", "rollout", "undo", "deployment/"+name)
	eventuallyGone(t, o)
}
