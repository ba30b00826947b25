// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/test/framework"
)

// chosen lists the black-box tests that run against the installation unless FULL is set. They cover
// each controller and each kind of right at least once.
var chosen = []string{
	"TestNodePool_Spec", "TestNodePool_RuntimeClass", "TestNodePool_DeletionCleansNodes",
	"TestPodCount_FollowsThePods", "TestManager_ProbesAndMetrics", "TestPodStartupByPool",
	"TestOptIn_ScheduleAnnotations", "TestRestart_AllKinds", "TestPolicyAsksForThatVeryTarget",
}

// TestInstallation installs Tidekeeper with Helm, upgrades, tests, uses and uninstalls it, and
// checks that the uninstall restores the cluster's previous state. It does the same with kustomize.
// The steps build on each other.
func TestInstallation(t *testing.T) {
	i := &installation{life: t, Cluster: framework.StartEmpty(t, "--nodes=0", "--audit")}
	eventuallyPopulated(t, i.Cluster)
	before, err := dump(t, i.Cluster)
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		name string
		run  func(*testing.T)
	}{
		{"helm install of a version before this one", i.install},
		{"its pods", i.pods},
		{"a manager with its service account", i.startManager},
		{"helm upgrade brings the kinds too", i.upgrade},
		{"helm test", i.test},
		{"limited to namespaces", i.limited},
		{"the black-box tests", i.blackBox},
		{"helm uninstall without a manager changes nothing", i.uninstallWithoutManager},
		{"helm uninstall", i.uninstall},
		{"nothing is left behind", func(t *testing.T) {
			i.Delete(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})
			eventuallyAsBefore(t, i.Cluster, before)
		}},
		{"kustomize", i.kustomize},
		{"from kubectl to Helm", i.takeOver},
		{"kustomize is deleted", i.deleteKustomize},
		{"nothing is left behind of that either", func(t *testing.T) { eventuallyAsBefore(t, i.Cluster, before) }},
	} {
		if !t.Run(step.name, func(t *testing.T) { step.run(t) }) {
			t.FailNow()
		}
	}
}

// installation is the state that the steps of TestInstallation share.
type installation struct {
	*framework.Cluster
	// life is the test that contains all steps, for processes that outlive a step.
	life    *testing.T
	manager *framework.Manager
}

// helmArgs returns the arguments that all of the tests' installing helm commands share.
func helmArgs(command, chart string, sets ...string) []string {
	args := []string{command, release, chart, "--namespace", namespace, "--set=image.tag=test"}
	for _, set := range sets {
		args = append(args, "--set="+set)
	}
	return args
}

func (i *installation) helm(t *testing.T, args ...string) {
	t.Helper()
	mustHelm(t, append(args, "--kubeconfig", i.Kubeconfig)...)
}

// install installs a copy of the chart that simulates an older version, because no older version
// exists yet: its NodePool CRD has no printer columns.
func (i *installation) install(t *testing.T) {
	i.AddNodes(i.life, "home", 2)
	// The namespace enforces the restricted Pod Security Standard.
	if err := i.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: namespace, Labels: map[string]string{"pod-security.kubernetes.io/enforce": "restricted"},
	}}); err != nil {
		t.Fatal(err)
	}
	older := filepath.Join(t.TempDir(), "tidekeeper")
	if err := os.CopyFS(older, os.DirFS(framework.Chart())); err != nil {
		t.Fatal(err)
	}
	change(t, filepath.Join(older, "Chart.yaml"), func(chart map[string]any) { chart["version"] = "0.0.1" })
	change(t, filepath.Join(older, "files", "crd", "tidekeeper.dev_nodepools.yaml"), func(crd map[string]any) {
		version := crd["spec"].(map[string]any)["versions"].([]any)[0].(map[string]any)
		delete(version, "additionalPrinterColumns")
	})
	i.helm(t, helmArgs("install", older)...)
	if columns := i.columns(t); columns != "" {
		t.Fatalf("the older version has columns, too: %s", columns)
	}
	i.BecomeManager(t)
}

// change edits a YAML file.
func change(t *testing.T, path string, change func(map[string]any)) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var content map[string]any
	if err := yaml.Unmarshal(text, &content); err != nil {
		t.Fatal(err)
	}
	change(content)
	if text, err = yaml.Marshal(content); err == nil {
		err = os.WriteFile(path, text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// columns returns the header line of kubectl get nodepools.
func (i *installation) columns(t *testing.T) string {
	t.Helper()
	out, err := i.Kubectl("", "get", "crd", "nodepools.tidekeeper.dev", "-o", "jsonpath={.spec.versions[0].additionalPrinterColumns[*].name}")
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// pods checks that the managers' two pods are admitted under the restricted Pod Security Standard
// and scheduled to different nodes.
func (i *installation) pods(t *testing.T) {
	pods := &corev1.PodList{}
	framework.Eventually(t, "two pods are ready on two nodes", func() error {
		if err := i.List(t.Context(), pods, client.InNamespace(namespace)); err != nil {
			return err
		}
		var ready []string
		for _, pod := range pods.Items {
			if slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
				return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
			}) {
				ready = append(ready, pod.Spec.NodeName)
			}
		}
		if slices.Sort(ready); !slices.Equal(ready, []string{"home-1", "home-2"}) {
			return fmt.Errorf("ready pods are on %q", ready)
		}
		return nil
	})
	budget := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: release, Namespace: namespace}}
	framework.Eventually(t, "one of them may be disrupted", func() error {
		if i.Refresh(t, budget); budget.Status.DisruptionsAllowed != 1 || budget.Status.ExpectedPods != 2 {
			return fmt.Errorf("%+v", budget.Status)
		}
		return nil
	})
	spec := pods.Items[0].Spec
	if root := spec.Containers[0].SecurityContext.ReadOnlyRootFilesystem; root == nil || !*root {
		t.Error("their root file system is writable")
	}
	// The standard is enforced: any additional privilege is rejected.
	for what, spoil := range map[string]func(*corev1.PodSpec){
		"privilege escalation": func(s *corev1.PodSpec) { s.Containers[0].SecurityContext.AllowPrivilegeEscalation = nil },
		"capabilities":         func(s *corev1.PodSpec) { s.Containers[0].SecurityContext.Capabilities = nil },
		"root":                 func(s *corev1.PodSpec) { s.SecurityContext.RunAsNonRoot = nil },
		"any system call":      func(s *corev1.PodSpec) { s.SecurityContext.SeccompProfile = nil },
	} {
		spec := spec.DeepCopy()
		spoil(spec)
		err := i.Create(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "spoilt", Namespace: namespace}, Spec: *spec}, client.DryRunAll)
		if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "PodSecurity") {
			t.Errorf("a pod with %s: got %v, want a refusal", what, err)
		}
	}
	// From here on the manager runs as a process outside the cluster.
	if _, err := i.Kubectl("", "-n", namespace, "scale", "deployment", release, "--replicas=0"); err != nil {
		t.Fatal(err)
	}
	framework.Eventually(t, "the pods are gone", func() error {
		err := i.List(t.Context(), pods, client.InNamespace(namespace))
		if err == nil && len(pods.Items) > 0 {
			err = fmt.Errorf("there are %d", len(pods.Items))
		}
		return err
	})
	i.Delete(t, framework.Node("home-1"))
	i.Delete(t, framework.Node("home-2"))
}

// start starts a manager process with the given arguments, and with leader election that does not
// lose the lease on a busy machine.
func (i *installation) start(args ...string) {
	i.life.Helper()
	i.manager = i.StartManager(i.life, append(framework.ElectUntilReleasedIn(namespace), args...)...)
}

func (i *installation) startManager(t *testing.T) {
	i.start()
	i.AddNodes(i.life, "tide", 1, "--pool=tide")
	// Pods that tolerate all taints are scheduled to tide-1. Its kubelet starts no pods while the
	// node is not ready, so that runPod can run them instead.
	i.Sandbox(t, "nodes", "not-ready", "tide-1")
	i.applyPool(t)
}

// applyPool creates a pool and waits until its node matches the spec.
func (i *installation) applyPool(t *testing.T) {
	t.Helper()
	pool := framework.Pool("tide")
	pool.Spec.Labels = map[string]tidekeeperv1.LabelValue{"example.com/tide": "high"}
	pool.Spec.Taints = []tidekeeperv1.Taint{{Key: "example.com/tide", Effect: corev1.TaintEffectNoSchedule}}
	if err := i.Create(t.Context(), pool); err != nil {
		t.Fatal(err)
	}
	i.eventuallyLabel(t, "high")
}

// deletePool deletes the pool, and waits until it no longer exists and its node is clean.
func (i *installation) deletePool(t *testing.T) {
	t.Helper()
	pool := framework.Pool("tide")
	i.Delete(t, pool)
	framework.Eventually(t, "the pool is gone", func() error {
		if err := i.Get(t.Context(), client.ObjectKeyFromObject(pool), pool); !apierrors.IsNotFound(err) {
			return fmt.Errorf("it still exists (%w)", err)
		}
		return nil
	})
	i.eventuallyLabel(t, "")
}

// eventuallyLabel waits until the pool's label has the given value on the node; "" means that the
// label is absent.
func (i *installation) eventuallyLabel(t *testing.T, want string) {
	t.Helper()
	node := framework.Node("tide-1")
	framework.Eventually(t, fmt.Sprintf("the label of the node is %q", want), func() error {
		i.Refresh(t, node)
		tainted := slices.ContainsFunc(node.Spec.Taints, func(taint corev1.Taint) bool { return taint.Key == "example.com/tide" })
		if node.Labels["example.com/tide"] != want || tainted != (want != "") {
			return fmt.Errorf("it is %q, and tainted: %t", node.Labels["example.com/tide"], tainted)
		}
		return nil
	})
}

// upgrade upgrades the release to this repository's version while a manager is running.
func (i *installation) upgrade(t *testing.T) {
	pool := framework.Pool("tide")
	i.Refresh(t, pool)
	uid := pool.UID
	i.helm(t, append(helmArgs("upgrade", framework.Chart(), "replicas=0"), "--wait")...)
	if columns := i.columns(t); !strings.Contains(columns, "Status") {
		t.Errorf("the CRD was not upgraded; its columns are %q", columns)
	}
	i.Change(t, pool, func() { pool.Spec.Labels["example.com/tide"] = "low" })
	i.eventuallyLabel(t, "low")
	if pool.UID != uid {
		t.Error("the pool was replaced")
	}
}

func (i *installation) test(t *testing.T) {
	said, err := helmWithPod(t, i.Cluster, "tidekeeper-check", "test", release, "--namespace", namespace, "--kubeconfig", i.Kubeconfig)
	if err != nil || !strings.Contains(said, " leads.") {
		t.Errorf("helm test: %v\n%s", err, said)
	}
	i.manager.Stop(t)
	if out, err := exec.CommandContext(t.Context(), mustBinary(t, "TIDEKEEPER_BIN", "tidekeeper"), "check", "--timeout=5s",
		"--leader-elect-resource-namespace="+namespace, "--kubeconfig", i.AccountKubeconfig(t, namespace, framework.ManagerAccount)).CombinedOutput(); err == nil ||
		!strings.Contains(string(out), "after 5s no manager leads: the lease tidekeeper has ") || !strings.Contains(string(out), "no holder") {
		t.Errorf("without a manager the check says %v\n%s", err, out)
	}
	i.start()
	i.deletePool(t)
	i.manager.Stop(t)
}

// limited installs Tidekeeper with rights in a single namespace. Annotated workloads in this
// namespace are restarted, and the manager does not even read other namespaces.
func (i *installation) limited(t *testing.T) {
	shop := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}
	i.Apply(t, shop)
	audit := i.Audit(t, "tidekeeper/")
	i.helm(t, helmArgs("upgrade", framework.Chart(), "replicas=0", "namespaces={shop}")...)
	rights, err := i.ManagerRights(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, right := range rights {
		ofWorkloads := right.Group == "apps" || strings.HasPrefix(right.Resource, "scheduledrestarts")
		if ofWorkloads && right.Namespace != "shop" {
			t.Errorf("it may %s", right)
		}
	}

	i.AwaitManagerRights(t)
	i.EventuallyAllowed(t, framework.ManagerUser, framework.Right{Verb: "watch", Group: "tidekeeper.dev", Resource: "scheduledrestarts", Namespace: "blog"}, false)
	elsewhere := framework.Run(t, "--kubeconfig", i.AccountKubeconfig(t, namespace, framework.ManagerAccount), "--namespaces=shop,blog")
	if code := elsewhere.Wait(t); code != 1 || !strings.Contains(elsewhere.Log(), "list and watch scheduledrestarts.tidekeeper.dev in the namespace blog, ") {
		t.Errorf("a manager for an additional namespace exits with %d:\n%s", code, elsewhere.Log())
	}

	for _, namespace := range []string{metav1.NamespaceDefault, "shop"} {
		labels := map[string]string{"app": "web"}
		i.Apply(t, &appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: namespace, Annotations: map[string]string{tidekeeperv1.OptInAnnotation: "true"}},
			Spec: appsv1.DeploymentSpec{Replicas: new(int32(0)), Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "example.com/app:1"}}},
			}},
		})
	}
	i.start("--namespaces=shop")
	i.applyPool(t)
	restart := &tidekeeperv1.ScheduledRestart{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "shop"}}
	framework.Eventually(t, "the workload in the namespace has opted in", func() error {
		if err := i.Get(t.Context(), client.ObjectKeyFromObject(restart), restart); err != nil {
			return err
		}
		if ready := meta.FindStatusCondition(restart.Status.Conditions, "Ready"); ready == nil {
			return errors.New("without a status")
		}
		return nil
	})
	i.EventuallyEvent(t, "Deployment", "web", "Normal ScheduledRestartCreated")
	i.EventuallyEvent(t, "NodePool", "tide", "Normal SettingsApplied")
	if err := i.Get(t.Context(), client.ObjectKey{Namespace: metav1.NamespaceDefault, Name: "web"}, &tidekeeperv1.ScheduledRestart{}); !apierrors.IsNotFound(err) {
		t.Errorf("the workload in another namespace has opted in, too (%v)", err)
	}
	i.deletePool(t)
	i.manager.Stop(t)
	for _, q := range audit.Requests(t) {
		if q.Group == "apps" && q.Namespace != "shop" || q.Denied {
			t.Errorf("it has requested %s in %q, denied: %t", q, q.Namespace, q.Denied)
		}
	}
}
