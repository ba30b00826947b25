// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/migrate"
	"tidekeeper.dev/tidekeeper/test/framework"
)

// originalCRDs contains the original projects' CRDs, as far as they are published.
const originalCRDs = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: nodepools.nodes.lailin.xyz}
spec:
  group: nodes.lailin.xyz
  scope: Cluster
  names: {kind: NodePool, listKind: NodePoolList, plural: nodepools, singular: nodepool}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: erus.mtsre.meitu.com}
spec:
  group: mtsre.meitu.com
  scope: Namespaced
  names: {kind: Eru, listKind: EruList, plural: erus, singular: eru}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`

const originals = `
apiVersion: nodes.lailin.xyz/v1
kind: NodePool
metadata: {name: old, finalizers: [node.finalizers.node-pool.lailin.xyz]}
spec:
  taints: [{key: node-pool.lailin.xyz, value: old, effect: NoSchedule}]
  labels: {node-pool.lailin.xyz/old: "10"}
  handler: runc
---
apiVersion: mtsre.meitu.com/v1
kind: Eru
metadata: {name: written, namespace: old, labels: {team: infra}}
spec: {deploymentname: web, enabled: true, schedule: 0 3 * * *}
---
apiVersion: mtsre.meitu.com/v1
kind: Eru
metadata:
  name: made
  namespace: old
  annotations: {mtsre.meitu.com/deploymentName: '"made"', mtsre.meitu.com/enabled: "true", mtsre.meitu.com/schedule: '"30 4 * * *"'}
spec: {deploymentname: made, enabled: true, schedule: 30 4 * * *}
---
apiVersion: mtsre.meitu.com/v1
kind: Eru
metadata: {name: often, namespace: old}
spec: {deploymentname: web, enabled: true, schedule: "@every 6h"}
`

const migrated = `apiVersion: tidekeeper.dev/v1
kind: NodePool
metadata:
  name: old
spec:
  handler: runc
  labels:
    node-pool.lailin.xyz/old: "10"
  taints:
  - effect: NoSchedule
    key: node-pool.lailin.xyz
    value: old
---
apiVersion: tidekeeper.dev/v1
kind: ScheduledRestart
metadata:
  labels:
    team: infra
  name: written
  namespace: old
spec:
  schedule: 0 3 * * *
  suspend: false
  targetRef:
    kind: Deployment
    name: web
  timeZone: Asia/Shanghai
`

const (
	noteFinalizers = "note: NodePool old: metadata.finalizers: are for the original's controller to remove: docs/tasks/move-from-the-original-operators.md says how to delete the original without it\n"
	leftOutOften   = `left out: Eru old/often: spec.schedule: schedule "@every 6h": @every is not supported, as it has no fixed times: write for example "*/30 * * * *" or "0 */6 * * *": change it and convert it again` + "\n"
	noteStays      = "note: Eru old/written: the original deletes it with the Deployment web, which does not opt in: the ScheduledRestart stays, and then reports TargetNotFound: annotate the Deployment if it must go with it\n"
)

// TestMigrateFromCluster follows all steps of docs/tasks/move-from-the-original-operators.md in a
// cluster in which the original projects' controllers were running. No setting may be missing on a
// node at any moment, and no pod may be restarted. In the end Tidekeeper's objects must own
// everything that the original controllers had created, so that it is deleted with these objects.
func TestMigrateFromCluster(t *testing.T) {
	kubectl(t, originalCRDs, "apply", "-f", "-")
	t.Cleanup(func() {
		// The finalizer still exists if the test has failed early.
		_, _ = cluster.Kubectl("", "patch", "nodepools.nodes.lailin.xyz", "old", "--type=merge", "-p", `{"metadata":{"finalizers":null}}`)
		kubectl(t, originalCRDs, "delete", "-f", "-")
	})
	kubectl(t, "", "wait", framework.LongTimeout, "--for=condition=Established", "crd/nodepools.nodes.lailin.xyz", "crd/erus.mtsre.meitu.com")
	cluster.AddNodes(t, "old", 2)
	aNamespace(t, "old")
	aDeployment(t, "old", "web")
	aDeployment(t, "old", "made")
	framework.Eventually(t, "the original objects exist", func() error {
		_, err := cluster.Kubectl(originals, "apply", "-f", "-")
		return err
	})

	// Simulate the original projects' controllers.
	kubectl(t, "", "label", "node", "old-1", "old-2", "node-role.kubernetes.io/old=", "node-pool.lailin.xyz/old=10")
	kubectl(t, "", "taint", "node", "old-1", "old-2", "node-pool.lailin.xyz=old:NoSchedule")
	kubectl(t, "", "annotate", "deployment", "made", "-n", "old", "mtsre.meitu.com/eru=true")
	old := &unstructured.Unstructured{}
	old.SetGroupVersionKind(migrate.NodePoolKind)
	old.SetName("old")
	if err := cluster.Get(t.Context(), client.ObjectKeyFromObject(old), old); err != nil {
		t.Fatal(err)
	}
	class := &nodev1.RuntimeClass{
		ObjectMeta: metav1.ObjectMeta{Name: "node-pool-old", OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(old, migrate.NodePoolKind)}},
		Handler:    "runc", Scheduling: &nodev1.Scheduling{NodeSelector: map[string]string{"node-role.kubernetes.io/old": ""}},
	}
	cluster.Apply(t, class)
	templates := templatesOf(t, "old")
	lost := watchTaint(t, "node-pool.lailin.xyz")

	// 1. Tidekeeper's objects are created in suspended form, while the original projects'
	// controllers are still running.
	cluster.StartManager(t)
	from := []string{"migrate", "--from-cluster", "-n", "old", "--time-zone", "Asia/Shanghai"}
	r := command{args: append(from, "--suspended")}.run(t)
	if r.code != 2 || !strings.Contains(r.stdout, "suspend: true") || strings.Contains(r.stdout, "suspend: false") {
		t.Errorf("suspended: %+v", r)
	}
	apply(t, r.stdout)
	framework.Eventually(t, "the RuntimeClass of the original is left alone", func() error {
		return statusIs(t, "nodepools.tidekeeper.dev/old", "RuntimeClassConflict")
	})

	// 2. The original projects' controllers are stopped, and Tidekeeper's objects are enabled.
	r = command{args: from}.run(t)
	if diff := cmp.Diff(migrated, r.stdout); diff != "" || r.code != 2 {
		t.Errorf("exit code %d; objects (-want +got):\n%s", r.code, diff)
	}
	if got := noteFinalizers + leftOutOften + noteStays; !strings.HasPrefix(r.stderr, got) || strings.Count(r.stderr, "\nto do: ") != 3 || strings.Count(r.stderr, "\n") != 6 {
		t.Errorf("stderr:\n%swant it to begin with\n%s", r.stderr, got)
	}
	asJSON := command{args: append(from, "-o", "json")}.run(t)
	if got := documents(t, r.stdout); cmp.Diff(got, itemsOf(t, asJSON.stdout)) != "" {
		t.Errorf("-o json differs from -o yaml:\n%s", cmp.Diff(got, itemsOf(t, asJSON.stdout)))
	}
	apply(t, r.stdout)

	// 3. The objects that the original projects' controllers have created are handed over to
	// Tidekeeper.
	commands := command{args: append(from, "-o", "commands")}.run(t)
	if commands.code != 2 || commands.stderr != noteFinalizers+leftOutOften+noteStays {
		t.Errorf("commands: %+v", commands)
	}
	script := exec.Command("/bin/sh", "-e")
	script.Stdin, script.Env = strings.NewReader(commands.stdout), command{}.process().Env
	if out, err := script.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s\n%s", err, commands.stdout, out)
	}
	framework.Eventually(t, "our objects are reconciled", func() error {
		if err := statusIs(t, "nodepools.tidekeeper.dev/old", "Healthy"); err != nil {
			return err
		}
		made := &tidekeeperv1.ScheduledRestart{ObjectMeta: metav1.ObjectMeta{Name: "made", Namespace: "old"}}
		if err := cluster.Get(t.Context(), client.ObjectKeyFromObject(made), made); err != nil {
			return err
		}
		if owner := metav1.GetControllerOf(made); owner == nil || owner.Kind != "Deployment" || made.Spec.Schedule != "30 4 * * *" || made.Spec.TimeZone != "Asia/Shanghai" || made.Spec.Suspend {
			return fmt.Errorf("made by the opt-in: %+v of %+v", made.Spec, owner)
		}
		return statusIs(t, "scheduledrestarts.tidekeeper.dev/written", "Scheduled")
	})
	// Applying the objects a second time changes nothing.
	if out := kubectl(t, r.stdout, "apply", "-f", "-"); strings.Count(out, "unchanged") != 2 || strings.Count(out, "\n") != 2 {
		t.Errorf("applied once more:\n%s", out)
	}
	if again := (command{args: from}).run(t); again.stdout != r.stdout || strings.Contains(again.stderr, "deployment made") {
		t.Errorf("converted once more: %+v", again)
	}

	// 4. The original projects' objects are deleted while their controllers are stopped.
	kubectl(t, "", "patch", "nodepools.nodes.lailin.xyz", "old", "--type=merge", "-p", `{"metadata":{"finalizers":null}}`)
	kubectl(t, "", "delete", "nodepools.nodes.lailin.xyz", "--all", "--cascade=orphan")
	kubectl(t, "", "delete", "erus.mtsre.meitu.com", "--all", "--all-namespaces")
	kubectl(t, "", "annotate", "deployments", "--all", "-n", "old", "mtsre.meitu.com/eru-")
	if diff := cmp.Diff(templates, templatesOf(t, "old")); diff != "" {
		t.Errorf("pods are replaced (-before +after):\n%s", diff)
	}
	after := &nodev1.RuntimeClass{ObjectMeta: metav1.ObjectMeta{Name: "node-pool-old"}}
	cluster.Refresh(t, after)
	if after.UID != class.UID || len(after.Scheduling.Tolerations) != 1 {
		t.Errorf("the RuntimeClass was created again, or does not follow the pool: %+v", after)
	}
	if nodes := lost(); len(nodes) > 0 {
		t.Errorf("the nodes %v were without the taint for a moment", nodes)
	}

	// The nodes' settings from the original project are removed with Tidekeeper's pool.
	kubectl(t, "", "delete", "nodepools.tidekeeper.dev", "old", framework.LongTimeout)
	node := framework.Node("old-1")
	cluster.Refresh(t, node)
	if _, labelled := node.Labels["node-pool.lailin.xyz/old"]; labelled || len(node.Spec.Taints) > 0 {
		t.Errorf("left behind: labels %v, taints %v", node.Labels, node.Spec.Taints)
	}
}

// TestMigrateFiles converts files, directories and the standard input, and checks the errors for
// input that cannot be read.
func TestMigrateFiles(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		name = filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("old.yaml", originals)
	write("README.md", "none of it")
	write("below/one.json", `{"apiVersion":"v1","kind":"List","items":[{"apiVersion":"mtsre.meitu.com/v1","kind":"Eru","metadata":{"name":"below"},"spec":{"deploymentname":"a","enabled":false,"schedule":"@daily"}}]}`)
	const below = "kind: ScheduledRestart\nmetadata:\n  name: below\nspec:\n"

	flat := command{args: []string{"migrate", "-f", dir, "--time-zone", "Asia/Shanghai"}}.run(t)
	if flat.code != 2 || !strings.HasPrefix(flat.stdout, migrated[:strings.Index(migrated, "---")]) || strings.Contains(flat.stdout, below) ||
		!strings.Contains(flat.stderr, "NodePool old ("+dir+"/old.yaml)") {
		t.Errorf("a directory: %+v", flat)
	}
	deep := command{args: []string{"migrate", "-R", "-f", dir, "--time-zone", "Asia/Shanghai"}}.run(t)
	if !strings.Contains(deep.stdout, below) {
		t.Errorf("a directory and what is below: %+v", deep)
	}
	pipe := command{args: []string{"migrate", "-f", "-", "--time-zone", "UTC"}}.process()
	pipe.Stdin = strings.NewReader("apiVersion: nodes.lailin.xyz/v1\nkind: NodePool\nmetadata: {name: worker}\n")
	if out, err := pipe.CombinedOutput(); err != nil || string(out) != "apiVersion: tidekeeper.dev/v1\nkind: NodePool\nmetadata:\n  name: worker\nspec: {}\n" {
		t.Errorf("the standard input: %v\n%s", err, out)
	}

	write("broken/a.yaml", "a: [")
	write("broken/b/b.yaml", "a: 1")
	for _, tc := range []struct{ name, args, want string }{
		{"nothing to read", "migrate", "error: nothing to read: give -f FILE, -f DIRECTORY, -f - or --from-cluster"},
		{"both", "migrate -f a --from-cluster", "error: if any flags in the group [filename from-cluster] are set none of the others can be"},
		{"no such file", "migrate -f /nowhere", `error: nothing is converted: the path "/nowhere" does not exist`},
		{"no YAML", "migrate -f " + dir + "/broken", "error: nothing is converted: error parsing " + dir + "/broken/a.yaml: "},
		{"no object", "migrate -f " + dir + "/broken/b", "error: nothing is converted: unable to decode \"" + dir + "/broken/b/b.yaml\": Object 'Kind' is missing"},
		{"no zone", "migrate -f a --time-zone CST", `error: --time-zone: unknown time zone "CST"`},
		{"no format", "migrate -f a -o name", "error: -o name: write one of yaml, json, commands"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := command{args: strings.Fields(tc.args)}.run(t)
			if r.code != 1 || r.stdout != "" || !strings.HasPrefix(r.stderr, tc.want) || strings.Count(r.stderr, "\n") != 1 {
				t.Errorf("exit code %d, stdout %q\nstderr %s  want %s", r.code, r.stdout, r.stderr, tc.want)
			}
		})
	}
}

// TestMigratePartOfACluster checks that the objects of kinds that the user may list are converted,
// and that the other kinds are reported in one line.
func TestMigratePartOfACluster(t *testing.T) {
	want := result{stderr: "note: the cluster does not know the kind NodePool of nodes.lailin.xyz/v1: nothing to convert\n" +
		"note: the cluster does not know the kind Eru of mtsre.meitu.com/v1: nothing to convert\nnote: there is nothing to convert\n"}
	// The original projects' kinds, which an earlier test has installed, may still be served.
	framework.Eventually(t, "there are no originals", func() error {
		return diff(want, command{args: []string{"migrate", "--from-cluster"}}.run(t))
	})
	const reader = `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: some}
rules: [{apiGroups: [nodes.lailin.xyz], resources: [nodepools], verbs: [list]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: some}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: some}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: some}]
`
	kubectl(t, originalCRDs+"---"+reader, "apply", "-f", "-")
	t.Cleanup(func() { kubectl(t, originalCRDs+"---"+reader, "delete", "-f", "-") })
	kubectl(t, "", "wait", framework.LongTimeout, "--for=condition=Established", "crd/nodepools.nodes.lailin.xyz", "crd/erus.mtsre.meitu.com")
	framework.Eventually(t, "a pool exists", func() error {
		_, err := cluster.Kubectl("apiVersion: nodes.lailin.xyz/v1\nkind: NodePool\nmetadata: {name: part}\n", "apply", "-f", "-")
		return err
	})
	some := cluster.UserKubeconfig(t, "some")
	framework.Eventually(t, "some of it is converted", func() error {
		r := command{kubeconfig: some, args: []string{"migrate", "--from-cluster"}}.run(t)
		if r.code != 5 || r.stdout != "apiVersion: tidekeeper.dev/v1\nkind: NodePool\nmetadata:\n  name: part\nspec: {}\n" ||
			!strings.HasPrefix(r.stderr, `error: not all could be read: erus.mtsre.meitu.com is forbidden: User "some" cannot list`) ||
			!strings.Contains(r.stderr, `deployments.apps is forbidden: User "some"`) || strings.Count(r.stderr, "\n") != 1 {
			return fmt.Errorf("%+v", r)
		}
		return nil
	})
}

// TestMigratedIsAccepted checks that the API server accepts the converted objects, and that it
// would have rejected the pool specs from which the conversion leaves parts out.
func TestMigratedIsAccepted(t *testing.T) {
	keys := []string{
		"kubernetes.io/hostname", "kubernetes.io/os", "kubernetes.io/arch", "node.kubernetes.io/instance-type", "node.kubernetes.io/windows-build", "node.kubernetes.io/x",
		"topology.kubernetes.io/zone", "beta.kubernetes.io/os", "failure-domain.beta.kubernetes.io/zone", "kubelet.kubernetes.io/x", "tidekeeper.dev/x",
		"node.cloudprovider.kubernetes.io/x", "node-role.kubernetes.io/same", "node-role.kubernetes.io/other", "a", "a.b/c", "A_B", "a/b/c", "-a", "", strings.Repeat("a", 64),
		strings.Repeat("a", 253) + "/b", "kubernetes.io/x", "x.kubernetes.io/y", "ä", "a b",
	}
	values := []string{"", "a", "A-b_c.9", "-a", "a b", "ä", strings.Repeat("a", 63), strings.Repeat("a", 64)}
	type spec struct {
		labels map[string]string
		taints []corev1.Taint
		other  string
	}
	var specs []spec
	for _, k := range keys {
		specs = append(specs, spec{labels: map[string]string{k: "a"}}, spec{taints: []corev1.Taint{{Key: k, Effect: "NoSchedule"}}})
	}
	for _, v := range values {
		specs = append(specs, spec{labels: map[string]string{"a": v}}, spec{taints: []corev1.Taint{{Key: "a", Value: v, Effect: "NoExecute"}}}, spec{other: v})
	}
	specs = append(specs, spec{taints: []corev1.Taint{{Key: "a", Effect: "Never"}}}, spec{taints: []corev1.Taint{{Key: "a"}}},
		spec{taints: []corev1.Taint{{Key: "a", Effect: "NoSchedule"}, {Key: "a", Effect: "NoSchedule"}}}, spec{other: "a.b"}, spec{other: "Runc"})
	many := spec{labels: map[string]string{}}
	for i := range 65 {
		many.labels[fmt.Sprint("a", i)] = ""
		if i < 33 {
			many.taints = append(many.taints, corev1.Taint{Key: fmt.Sprint("a", i), Effect: "NoSchedule"})
		}
	}
	specs = append(specs, many)
	for i, s := range specs {
		fields := map[string]any{"labels": s.labels, "taints": s.taints, "handler": s.other}
		check(t, fmt.Sprintf("%d: %+v", i, s), migrate.NodePoolKind, "same", fields, func(u *unstructured.Unstructured) {
			u.SetAPIVersion("tidekeeper.dev/v1")
			if s.other == "" {
				unstructured.RemoveNestedField(u.Object, "spec", "handler")
			}
			for i, taint := range s.taints {
				if taint.Value == "" {
					unstructured.RemoveNestedField(u.Object["spec"].(map[string]any)["taints"].([]any)[i].(map[string]any), "value")
				}
			}
		})
	}
	for _, schedule := range []string{"0 3 * * *", "@daily", "@every 1h", "0 3 * * * *", "60 * * * *", "TZ=UTC 0 3 * * *", "a b c d e", "0 0 30 2 *", "* * * * ", "0\t3 * * MON-FRI", "0 3 ? * L", strings.Repeat("1,", 300) + "1 * * * *"} {
		for _, target := range []string{"web", "web.a", "Web", "-", strings.Repeat("a", 253), strings.Repeat("a", 254)} {
			fields := map[string]any{"deploymentname": target, "enabled": true, "schedule": schedule}
			check(t, schedule+" of "+target, migrate.EruKind, "web", fields, nil)
		}
	}
}
