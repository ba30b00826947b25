// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package capacity

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"unicode"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tidekeeper.dev/tidekeeper/test/framework"
)

// podManifest returns the manifest of a pod with the given name and CPU request.
func podManifest(name, cpu string) string {
	return fmt.Sprintf("apiVersion: v1\nkind: Pod\nmetadata: {name: %s}\nspec: {containers: [{name: app, image: x, resources: {requests: {cpu: %s}}}]}\n---\n", name, cpu)
}

// aSmallWorld creates a world with a single node of 2 CPUs.
func aSmallWorld(t *testing.T, name string) *world {
	t.Helper()
	w := newWorld(t, name, rand.New(rand.NewPCG(1, 1)))
	n := framework.Node(name + "-0")
	n.Labels = map[string]string{worldLabel: name, corev1.LabelHostname: n.Name}
	n.Status.Allocatable = list("cpu", "2", "memory", "4Gi", "pods", "10")
	w.addNode(t, n)
	w.awaitNodes(t)
	return w
}

// TestWrongInput checks that invalid input results in one line on stderr that names the remedy, and
// an exit code.
func TestWrongInput(t *testing.T) {
	w := aSmallWorld(t, "input")
	const amount = "write an amount such as 2, 500m or 4Gi\n"
	for _, tc := range []struct {
		name, args, stdin string
		code              int
		want              string
	}{
		{"nothing", "fit", "", 1, "describe the pod: --cpu and --memory, --like deployment/NAME, or -f FILE\n"},
		{"no number", "fit --cpu x", "", 1, `--cpu "x": ` + amount},
		{"a negative number", "fit --memory=-1Gi", "", 1, `--memory "-1Gi": ` + amount},
		{"no amount", "fit --request foo", "", 1, "--request foo: write RESOURCE=AMOUNT, such as ephemeral-storage=10Gi\n"},
		{"no amount of a resource", "fit --request foo=bar", "", 1, `--request "bar": ` + amount},
		{"a resource twice", "fit --cpu 1 --request cpu=2", "", 1, "--request \"2\": cpu is requested already\n"},
		{"two ways", "fit --cpu 1 --like deployment/web", "", 1, "--like, -f, and the amounts --cpu, --memory, --gpu and --request cannot be combined: write one of these\n"},
		{"no type", "fit --like web", "", 1, "--like web: write TYPE/NAME of a workload or a pod, such as deployment/web\n"},
		{"no such type", "fit --like configmap/web", "", 1, "--like configmap/web: write TYPE/NAME of a workload or a pod, such as deployment/web\n"},
		{"no such PriorityClass", "fit --cpu 1 --priority-class nope", "", 3, "there is no PriorityClass \"nope\"\n"},
		{"no such workload", "fit --like deployment/nope -n input", "", 3, "there is no Deployment \"nope\" in the namespace \"input\"\n"},
		{"no such StatefulSet", "fit --like sts/nope -n input", "", 3, "there is no StatefulSet \"nope\" in the namespace \"input\"\n"},
		{"no such DaemonSet", "fit --like daemonset/nope -n input", "", 3, "there is no DaemonSet \"nope\" in the namespace \"input\"\n"},
		{"no such pod", "fit --like pod/nope -n input", "", 3, "there is no Pod \"nope\" in the namespace \"input\"\n"},
		{"no such kind", "fit --like rollout/nope -n input", "", 6, "the cluster does not know the kind Rollout of argoproj.io/v1alpha1\n"},
		{"no such pool", "fit nope --cpu 1", "", 3, "there is no NodePool \"nope\"\n"},
		{"not a pool", "fit deployment/web --cpu 1", "", 1, "\"deployment/web\" is not a NodePool: write NAME or nodepool/NAME\n"},
		{"no such file", "fit -f /nowhere", "", 1, "the path \"/nowhere\" does not exist\n"},
		{"nothing in a file", "fit -f -", "", 1, "-f has 0 objects: write one Pod or workload\n"},
		{"two pods", "fit -f -", podManifest("a", "1") + podManifest("b", "1"), 1, "-f has 2 objects: write one Pod or workload\n"},
		{"no pod", "fit -f -", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n", 1, "ConfigMap \"x\" has no pod template\n"},
		{"no containers", "fit -f -", "apiVersion: v1\nkind: Pod\nmetadata: {name: x}\nspec: {}\n", 1, "the pod has no containers\n"},
		{"no quantity", "fit -f -", podManifest("a", "lots"), 1, "the pod of Pod \"a\": quantities must match "},
		{"a negative request", "fit -f -", podManifest("a", `"-1"`), 1, "the API server would reject the pod: "},
		{"no such namespace", "fit -n nope -f -", podManifest("a", "1"), 3, "there is no Namespace \"nope\"\n"},
		{"no such format", "fit --cpu 1 -o wide", "", 1, "-o wide: write one of json, yaml\n"},
		{"no such node", "loss --node nope", "", 3, "there is no Node \"nope\"\n"},
		{"one node of two", "loss --node input-0,nope", "", 3, "there is no Node \"nope\"\n"},
		{"no such zone", "loss --zone nope", "", 1, "no node has the label topology.kubernetes.io/zone=nope\n"},
		{"no such pool to lose", "loss nope", "", 3, "there is no NodePool \"nope\"\n"},
		{"a node and a pool", "loss input --node input-0", "", 1, "leave out the name of the pool: --node is about nodes of any pool\n"},
		{"a loss after none", "loss --then input-0", "", 1, "--then, --cordon and --surge need --node: write the nodes that are lost first\n"},
		{"a node lost twice", "loss --node input-0 --then input-0", "", 1, "--then input-0: node input-0 is lost already\n"},
		{"no name", "loss --node input-0 --then ,", "", 1, "--then \",\": write names of nodes, separated by commas\n"},
		{"no such node later", "loss --node input-0 --then nope", "", 3, "there is no Node \"nope\"\n"},
		{"no such node to cordon", "loss --node input-0 --cordon nope", "", 3, "there is no Node \"nope\"\n"},
		{"a surge of a StatefulSet", "loss --node input-0 --surge sts/db -n input", "", 1, "--surge sts/db: write deployment/NAME: other workloads start no additional pods on other nodes\n"},
		{"a surge of none", "loss --node input-0 --surge deployment/nope -n input", "", 3, "there is no Deployment \"nope\" in the namespace \"input\"\n"},
		{"a node and a zone", "loss --node input-0 --zone a", "", 1, "write either --node or --zone, not both\n"},
	} {
		r := tide(t, tc.stdin, "", append([]string{"pools"}, strings.Fields(tc.args)...)...)
		if r.code != tc.code || r.stdout != "" || !strings.HasPrefix(r.stderr, "error: "+tc.want) || strings.Count(r.stderr, "\n") != 1 {
			t.Errorf("%s: exit code %d, want %d; stdout %q\nstderr %swant   error: %s", tc.name, r.code, tc.code, r.stdout, r.stderr, tc.want)
		}
	}
	if f := w.fit(t, "", "--cpu", "500m"); f.Copies != 4 {
		t.Errorf("the same world with right input has room for %d copies, want 4", f.Copies)
	}
}

// TestMissingRights checks that a missing right results in one line on stderr and an exit code.
// Without the right to create pods, pools fit answers as far as possible, and a note names the
// limitation. Without the right to list volumes, pools fit answers "at most" and names the right.
func TestMissingRights(t *testing.T) {
	w := aSmallWorld(t, "rights")
	cluster.Apply(t, &corev1.LimitRange{
		ObjectMeta: metav1.ObjectMeta{Name: "defaults", Namespace: w.name},
		Spec:       corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{{Type: corev1.LimitTypeContainer, DefaultRequest: list("memory", "2Gi"), Default: list("memory", "2Gi")}}},
	})
	user := func(name string, resources ...string) string {
		role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "rights-" + name}, Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{"", "tidekeeper.dev"}, Resources: resources, Verbs: []string{"get", "list", "watch"}},
		}}
		cluster.Apply(t, role)
		account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: w.name}}
		cluster.Apply(t, account)
		cluster.Apply(t, &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: role.Name}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
			Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: name, Namespace: w.name}},
		})
		return cluster.AccountKubeconfig(t, w.name, name)
	}
	dev := cluster.UserKubeconfig(t, "dev")
	forbidden := func(kubeconfig, what string) {
		t.Helper()
		for _, args := range []string{"fit --cpu 1", "loss"} {
			framework.Eventually(t, "pools "+args+" is forbidden because of "+what, func() error {
				r := tide(t, "", kubeconfig, append([]string{"pools"}, strings.Fields(args)...)...)
				if r.code != 5 || r.stdout != "" || !strings.HasPrefix(r.stderr, "error: "+what+" is forbidden: User ") || strings.Count(r.stderr, "\n") != 1 {
					return fmt.Errorf("%+v", r)
				}
				return nil
			})
		}
	}
	forbidden(dev, "nodepools.tidekeeper.dev")
	forbidden(user("no-nodes", "nodepools"), "nodes")
	forbidden(user("no-pods", "nodepools", "nodes"), "pods")

	reader := user("reader", "nodepools", "nodes", "pods")
	const note = "the pod is evaluated as written, without the defaults of its RuntimeClass and LimitRanges: pods is forbidden: User "
	framework.Eventually(t, "a user who may not create pods gets an answer and a note", func() error {
		r := tide(t, podManifest("a", "500m"), reader, "pools", "fit", w.name, "-n", w.name, "-f", "-")
		if r.code != 0 || !strings.HasPrefix(r.stderr, note) || strings.Count(r.stderr, "\n") != 1 || !strings.Contains(r.stdout, "requests 0.5 CPU.\n") || !strings.Contains(r.stdout, "rights   at most 4 ") {
			return fmt.Errorf("%+v", r)
		}
		return nil
	})
	claimed := strings.Replace(podManifest("a", "500m"), "spec: {", "spec: {volumes: [{name: data, persistentVolumeClaim: {claimName: none}}], ", 1)
	framework.Eventually(t, "a user who may not list volumes learns which right is missing", func() error {
		r := tide(t, claimed, reader, "pools", "fit", w.name, "-n", w.name, "-f", "-")
		if r.code != 0 || !strings.Contains(r.stdout, "persistent volumes (no right to list persistentvolumeclaims)") || !strings.Contains(r.stdout, "rights   at most 4 ") {
			return fmt.Errorf("%+v", r)
		}
		return nil
	})
	if f := w.fit(t, claimed, "-f", "-"); f.Copies != 0 || len(f.AtMost) > 0 {
		t.Errorf("with the right: %+v, want no copies, because there is no claim", f)
	}
	w.assertUnreadPriorities(t, reader)
	if f := w.fit(t, podManifest("a", "500m"), "-f", "-"); f.Copies != 2 {
		t.Errorf("with the defaults of the LimitRange %d copies fit, want 2", f.Copies)
	}
}

// assertUnreadPriorities checks that pools fit names a missing right to read PriorityClasses in one
// line, if it matters.
func (w *world) assertUnreadPriorities(t *testing.T, reader string) {
	t.Helper()
	for cpu, note := range map[string]string{"1": "", "3": "Preemption is not evaluated, because the priority of the pod is not known: priorityclasses.scheduling.k8s.io is forbidden: User "} {
		r := tide(t, "", reader, "pools", "fit", w.name, "--cpu", cpu)
		if r.code != 0 || !strings.HasPrefix(r.stderr, note) || strings.Count(r.stderr, "\n") != min(len(note), 1) {
			t.Errorf("--cpu %s: %+v, want a note %q", cpu, r, note)
		}
	}
}

// TestHostileText checks that control characters for terminals are removed from the output, even if
// they come from fields that the API server does not validate.
func TestHostileText(t *testing.T) {
	w := aSmallWorld(t, "hostile")
	dev := cluster.UserKubeconfig(t, "dev")
	const red = `\u001b[31m\u202e\nerror: none`
	object := func(kind, fields string) string {
		return fmt.Sprintf("apiVersion: apps/v1\nkind: %s\nmetadata: {name: \"%s\", labels: {\"%s\": \"%s\"}}\nspec: {%s}\n", kind, red, red, red, fields)
	}
	template := func(container string) string {
		return object("Deployment", `template: {metadata: {labels: {"`+red+`": x}}, spec: {containers: [{`+container+`}]}}`)
	}
	for name, tc := range map[string]struct {
		args  []string
		stdin string
	}{
		"a name":            {[]string{"fit", "-f", "-"}, object("ConfigMap", "")},
		"a kind":            {[]string{"fit", "-f", "-"}, "apiVersion: v1\nkind: \"" + red + "\"\nmetadata: {name: x}\n"},
		"a label":           {[]string{"fit", "-f", "-"}, template(`name: app, image: x`)},
		"a container":       {[]string{"fit", "-f", "-"}, template(`name: "` + red + `", image: x`)},
		"a resource":        {[]string{"fit", "-f", "-"}, template(`name: app, image: x, resources: {requests: {"` + red + `": 1}}`)},
		"a quantity":        {[]string{"fit", "-f", "-"}, template(`name: app, image: x, resources: {requests: {cpu: "` + red + `"}}`)},
		"a flag's resource": {[]string{"fit", w.name, "--request", "a\x1b[31m\u202e=1"}, ""},
		"a flag's amount":   {[]string{"fit", w.name, "--request", "a=\x1b[31m\u202e"}, ""},
		"a workload":        {[]string{"fit", "--like", "deployment/\x1b[31m\u202e"}, ""},
		"a pool":            {[]string{"fit", "\x1b[31m\u202e", "--cpu", "1"}, ""},
		"a node":            {[]string{"loss", "--node", "\x1b[31m\u202e"}, ""},
		"a zone":            {[]string{"loss", "--zone", "\x1b[31m\u202e"}, ""},
	} {
		for _, kubeconfig := range []string{"", dev} {
			r := tide(t, tc.stdin, kubeconfig, append([]string{"pools"}, tc.args...)...)
			if strings.Contains("\n"+r.stdout+r.stderr, "\nerror: none") {
				t.Errorf("%s: a line is made up: %q", name, r.stdout+r.stderr)
			}
			for _, c := range r.stdout + r.stderr {
				if c != '\n' && (unicode.IsControl(c) || unicode.Is(unicode.Cf, c)) {
					t.Errorf("%s: %U is printed: %q", name, c, r.stdout+r.stderr)
					break
				}
			}
		}
	}
}
