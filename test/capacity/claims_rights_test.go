// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package capacity

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"tidekeeper.dev/tidekeeper/internal/capacity"
	"tidekeeper.dev/tidekeeper/test/framework"
)

// readable lists what a user may read who has all rights that the pages name, by API group.
var readable = map[string][]string{
	"":                  {"nodes", "pods", "persistentvolumeclaims", "persistentvolumes", "namespaces"},
	"apps":              {"statefulsets", "deployments", "replicasets", "daemonsets"},
	"policy":            {"poddisruptionbudgets"},
	"scheduling.k8s.io": {"priorityclasses"},
	"storage.k8s.io":    {"storageclasses", "csidrivers", "csinodes", "volumeattachments"},
	"tidekeeper.dev":    {"nodepools"},
}

// userWithout returns the name of a user who may read all that is readable but the given resource, and
// may create pods, which is for dry runs.
func userWithout(t *testing.T, resource string) string {
	t.Helper()
	user := "lacks-" + resource
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: user}, Rules: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"create"}}}}
	for group, resources := range readable {
		rest := slices.DeleteFunc(slices.Clone(resources), func(r string) bool { return r == resource })
		if len(rest) > 0 {
			role.Rules = append(role.Rules, rbacv1.PolicyRule{APIGroups: []string{group}, Resources: rest, Verbs: []string{"get", "list", "watch"}})
		}
	}
	cluster.Apply(t, role)
	cluster.Apply(t, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: user}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: user},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	})
	cluster.EventuallyAllowed(t, user, framework.Right{Verb: "list", Resource: "nodes"}, true)
	return user
}

// asUser runs a command with -o json as another user, and decodes its output.
func asUser(t *testing.T, user string, into any, stdin string, args ...string) result {
	t.Helper()
	r := tide(t, stdin, "", append(args, "-o", "json", "--as", user)...)
	if r.code != 0 && r.code != 2 {
		t.Errorf("%s as %s: %+v", args, user, r)
	} else if err := json.Unmarshal([]byte(r.stdout), into); err != nil {
		t.Errorf("%s as %s prints %q: %v", args, user, r.stdout, err)
	}
	return r
}

// TestVolumesWithMissingRights checks the answers to users who lack one right each: a number is either
// that of an administrator, or at most, not below it, with the name of the right.
func TestVolumesWithMissingRights(t *testing.T) {
	w := newStorageWorld(t, "barred", storageNode{"a0", "a", 3, false}, storageNode{"a1", "a", 1, false}, storageNode{"b0", "b", 0, false})
	class := w.storageClass(t, "fresh", w.driver(), storagev1.VolumeBindingWaitForFirstConsumer, "a")
	w.bind(t, w.claim(t, "in-a", corev1.ReadWriteMany), w.zone("a"))
	w.bind(t, w.claim(t, "in-b", corev1.ReadWriteMany), w.zone("b"))
	w.bind(t, w.claim(t, "once", corev1.ReadWriteOncePod), "")
	w.bind(t, w.claim(t, "stray", corev1.ReadWriteMany), "")
	w.attach(t, "stray", "a0", "in-a", "too-many-0", "once")
	d := framework.Deployment("held", 1, w.pod("100m", "in-a"))
	d.Namespace = w.name
	d.Spec.Template.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
		NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchFields: []corev1.NodeSelectorRequirement{{Key: "metadata.name", Operator: corev1.NodeSelectorOpIn, Values: []string{w.name + "-a0"}}}}, {
			MatchExpressions: []corev1.NodeSelectorRequirement{{Key: corev1.LabelTopologyZone, Operator: corev1.NodeSelectorOpIn, Values: []string{w.zone("b")}}},
		}},
	}}}
	cluster.Apply(t, d)
	expected{on: map[string]int64{"a0": 1}}.places(t, w, 0)
	// A node's limit, and a zone, keep this pod from its place.
	w.create(t, w.pod("100m", "in-b"), 1)
	w.pods++
	expected{on: map[string]int64{"a0": 1}}.places(t, w, 1)
	own := `{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: own}, spec: {selector: {matchLabels: {app: own}}, template: {metadata: {labels: {app: own}}, spec: ` +
		`{nodeSelector: {` + worldLabel + `: ` + w.name + `}, containers: [{name: app, image: x, resources: {requests: {cpu: "1"}}}]}}, volumeClaimTemplates: [{metadata: {name: data}, ` +
		`spec: {storageClassName: ` + class + `, accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}]}}`
	manifests := map[string]string{
		"own volumes": own, "bound in a zone": manifest(t, podOf(w.pod("1", "in-a"))), "one pod": manifest(t, podOf(w.pod("1", "once"))), "missing": manifest(t, podOf(w.pod("1", "nowhere"))),
	}
	truth := map[string]int64{}
	for name, text := range manifests {
		says := w.ask(t, text)
		if truth[name] = says.Copies; len(says.AtMost) > 0 {
			t.Errorf("%s: an administrator gets %+v", name, says)
		}
	}
	// Beside the volume that is attached, and that of the Deployment, one more can be attached to a0.
	for name, want := range map[string]int64{"own volumes": 2, "bound in a zone": 3 + 4, "one pod": 1, "missing": 0} {
		if truth[name] != want {
			t.Errorf("%s: an administrator gets %d copies, want %d", name, truth[name], want)
		}
	}
	for _, resource := range []string{"persistentvolumeclaims", "persistentvolumes", "storageclasses", "csidrivers", "csinodes", "volumeattachments"} {
		t.Run(resource, func(t *testing.T) {
			user := userWithout(t, resource)
			named := func(what string, atMost []string) {
				t.Helper()
				if !strings.Contains(strings.Join(atMost, "; "), resource) {
					t.Errorf("%s: at most, because of %q, which does not name %s", what, atMost, resource)
				}
			}
			for name, text := range manifests {
				var fits []answered
				r := asUser(t, user, &fits, text, "pools", "fit", w.name, "-n", w.name, "-f", "-")
				switch {
				case len(fits) != 1:
					t.Errorf("%s: %+v", name, r)
				case len(fits[0].AtMost) > 0 && fits[0].Copies >= truth[name]:
					named(name, fits[0].AtMost)
				case len(fits[0].AtMost) > 0 || fits[0].Copies != truth[name]:
					t.Errorf("%s: without the right to list %s %+v, want %d", name, resource, fits[0], truth[name])
				}
			}
			var losses []loss
			asUser(t, user, &losses, "", "pools", "loss", "--node", w.name+"-a0")
			if len(losses) != 1 || len(losses[0].AtMost) == 0 && losses[0].homeless() != 1 {
				t.Errorf("pools loss without the right to list %s: %+v, want no place for one pod", resource, losses)
			} else if len(losses[0].AtMost) > 0 {
				named("pools loss", losses[0].AtMost)
			}
			var groups []pendingGroup
			asUser(t, user, &groups, "", "pools", "pending", w.name)
			for _, g := range groups {
				if g.Namespace == w.name && len(g.Pools) == 1 && len(g.Pools[0].AtMost) > 0 {
					named("pools pending", g.Pools[0].AtMost)
				} else if g.Namespace == w.name && (len(g.Pools) != 1 || g.Pools[0].Copies > 0) {
					t.Errorf("pools pending without the right to list %s: %+v", resource, g)
				}
			}
		})
	}
}

// TestPreemptionWithMissingRights checks the answers about preemption to users who lack one right each:
// the missing right is named, and nothing is said about budgets that could not be read.
func TestPreemptionWithMissingRights(t *testing.T) {
	applyPriorities(t)
	w := newWorld(t, "meek", rand.New(rand.NewPCG(1, 1)))
	cluster.Apply(t, &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: "guard", Namespace: w.name}, Spec: policyv1.PodDisruptionBudgetSpec{
		MinAvailable: new(intstr.FromInt32(100)), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "guarded"}},
	}})
	w.addPlain(t, "meek-0", "")
	w.awaitNodes(t)
	w.start(t, "guarded", corev1.PodSpec{NodeName: "meek-0", PriorityClassName: "fit-low", Containers: []corev1.Container{container("app", list("cpu", "2"))}})
	w.awaitPods(t)
	spec := corev1.PodSpec{NodeSelector: map[string]string{worldLabel: w.name}, Containers: []corev1.Container{container("app", list("cpu", "1"))}}
	violations := func(p *capacity.Preemption) int {
		if p == nil || p.BudgetViolations == nil {
			return -1
		}
		return *p.BudgetViolations
	}
	classed := *spec.DeepCopy()
	classed.PriorityClassName = "fit-high"
	d := framework.Deployment("web", 0, spec)
	d.Namespace = w.name
	cluster.Apply(t, d)
	for _, tc := range []struct{ resource, unknown string }{{"none", ""}, {"priorityclasses", "priorityclasses"}, {"poddisruptionbudgets", "poddisruptionbudgets"}} {
		user := userWithout(t, tc.resource)
		// The API server sets the priority in a dry run, which takes no right to read PriorityClasses.
		for _, ask := range []struct {
			stdin string
			args  []string
		}{
			{manifest(t, podOf(classed)), []string{"-f", "-"}},
			{"", []string{"--like", "deployment/web", "--priority-class", "fit-high"}},
		} {
			var fits []fit
			args := append([]string{"pools", "fit", w.name, "-n", w.name}, ask.args...)
			r := tide(t, ask.stdin, "", append(args, "-o", "json", "--as", user)...)
			if r.code == 5 && strings.HasPrefix(r.stderr, "error: ") && strings.Contains(r.stderr, tc.resource) && strings.Count(r.stderr, "\n") == 1 {
				continue // A clear message is as good as an answer.
			}
			if err := json.Unmarshal([]byte(r.stdout), &fits); err != nil || len(fits) != 1 || fits[0].Copies != 0 {
				t.Errorf("%s as %s: %+v", args, user, r)
				continue
			}
			said := r.stderr + fmt.Sprintf("%+v", fits[0].Preemption)
			switch p := fits[0].Preemption; {
			case tc.unknown == "" && (violations(p) != 1 || len(p.Victims) != 1 || p.Victims[0].Budget != "guard" || r.stderr != ""):
				t.Errorf("%s with all rights: %+v, %s, want the violated budget guard", args, p, r.stderr)
			case tc.unknown == "poddisruptionbudgets" && (p == nil || p.BudgetViolations != nil || !strings.Contains(said, tc.unknown)):
				t.Errorf("%s as %s: %s, want the name of the missing right", args, user, said)
			case tc.unknown == "priorityclasses" && violations(p) != 1 && !strings.Contains(said, tc.unknown):
				t.Errorf("%s as %s: %s, want the preemption or the name of the missing right", args, user, said)
			}
			text := tide(t, ask.stdin, "", append(args, "--as", user)...)
			if tc.unknown == "poddisruptionbudgets" && !strings.Contains(text.stdout+text.stderr, tc.unknown) {
				t.Errorf("%s as %s prints nothing about the missing right: %+v", args, user, text)
			}
		}
	}
}
