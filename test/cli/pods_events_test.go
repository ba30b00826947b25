// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tidekeeper.dev/tidekeeper/test/framework"
)

// eventsIn returns the reasons of the events in the output lines of pods watch -o json, in order.
func eventsIn(t *testing.T, lines []string) (reasons []string) {
	t.Helper()
	for _, line := range lines {
		var s step
		if err := json.Unmarshal([]byte(line), &s); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		if s.Kind == "Event" {
			reasons = append(reasons, s.Reason)
		}
	}
	return reasons
}

// TestPodsWatchEvents checks that a pod's events are printed among its transitions: the assignment
// to a node, the image pull, and the start and the end of the container. The kubelet's events are
// in order; the scheduler's event may come at any time.
func TestPodsWatchEvents(t *testing.T) {
	aNamespace(t, "events")
	w := follow(t, command{args: []string{"pods", "watch", "-n", "events", "-l", "app=web", "-o", "json"}})
	w.stderr.await(t, 1, `^No such pods yet`)
	d := annotated("events", "web", 1, "containers-ready-after", "1s")
	// Events of pods that are not watched are not printed.
	cluster.Apply(t, annotated("events", "other", 1))
	cluster.Apply(t, d)
	lines := w.stdout.awaitAll(t, `"kind":"Event".*"reason":"Scheduled"`, `"kind":"Event".*"name":"app".*"reason":"Started"`, `"name":"Ready".*"to":"True"`)
	cluster.Change(t, d, func() { d.Spec.Replicas = new(int32(0)) })
	lines = append(lines, w.stdout.await(t, 1, `"kind":"Deleted"`)...)
	w.interrupt(t)
	lines = append(lines, w.rest...)
	scheduled := 0
	kubelet := slices.DeleteFunc(eventsIn(t, lines), func(reason string) bool {
		if reason == "Scheduled" {
			scheduled++
		}
		return reason == "Scheduled"
	})
	if scheduled != 1 {
		t.Errorf("there are %d events that it was scheduled", scheduled)
	}
	// The event about the end of the container may be missing, because it is reported while the pod
	// is being deleted.
	if last := len(kubelet) - 1; last >= 0 && kubelet[last] == "Killing" {
		kubelet = kubelet[:last]
	}
	if err := diff([]string{"Pulling", "Pulled", "Created", "Started"}, kubelet); err != nil {
		t.Errorf("the events of the kubelet: %v", err)
	}
	if all := strings.Join(lines, "\n"); strings.Contains(all, `"pod":"other`) {
		t.Errorf("there are lines about another pod:\n%s", all)
	}
}

// TestPodsWatchWithoutEvents checks that, without the right to read events, only the transitions
// are printed, and a line that reports the missing right. With --events=false, neither events nor
// that line are printed.
func TestPodsWatchWithoutEvents(t *testing.T) {
	aNamespace(t, "noevents")
	cluster.Apply(t, &rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Name: "pods", Namespace: "noevents"},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"list", "watch"}}},
	})
	cluster.Apply(t, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "pods", Namespace: "noevents"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "pods"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "reader"}},
	})
	reader := cluster.UserKubeconfig(t, "reader")
	framework.Eventually(t, "the rights are in force", func() error {
		return diff(result{stderr: "There are no pods in the namespace noevents.\n"}, command{kubeconfig: reader, args: []string{"pods", "slow", "-n", "noevents"}}.run(t))
	})
	refused := follow(t, command{kubeconfig: reader, args: []string{"pods", "watch", "-n", "noevents", "-o", "json"}})
	refused.stderr.await(t, 1, `^Events are not shown: events is forbidden: User "reader" cannot (list|watch) resource "events"`)
	unwanted := follow(t, command{kubeconfig: reader, args: []string{"pods", "watch", "-n", "noevents", "-o", "json", "--events=false"}})
	unwanted.stderr.await(t, 1, `^No such pods yet`)
	pod := nowhere("noevents")
	pod.Spec.NodeSelector = nil
	cluster.Apply(t, pod)
	for _, w := range []*following{refused, unwanted} {
		lines := w.stdout.await(t, 1, `"name":"Ready".*"to":"True"`)
		w.interrupt(t)
		if reasons := eventsIn(t, append(lines, w.rest...)); len(reasons) > 0 {
			t.Errorf("events are printed: %v", reasons)
		}
	}
}
