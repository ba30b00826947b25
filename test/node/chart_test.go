// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/test/framework"
)

// hangs is the maximum time until a hanging manager is replaced: three failed liveness probes,
// which run every 20 s, the pod's grace period of 30 s, and the start of a pod.
const hangs = 20*time.Second*4 + 30*time.Second + startup

// TestChart installs, upgrades and uninstalls the chart on two real nodes, which run the pods'
// containers. The steps build on each other.
func TestChart(t *testing.T) {
	before := machine(t, "")
	n := &node{Cluster: framework.StartReal(t, "--real-nodes=2")}
	for _, step := range []struct {
		name string
		run  func(*testing.T)
	}{
		{"helm install", n.installChart},
		{"the kernel confines the managers", n.confined},
		{"helm test", n.helmTest},
		{"helm upgrade while a restart is under way", n.upgradeWhileRestarting},
		{"the leader's node is drained", n.drainLeader},
		{"both nodes are drained", n.drainBoth},
		{"the leader hangs", n.hangs},
		{"helm uninstall", n.uninstall},
	} {
		if !t.Run(step.name, step.run) {
			t.FailNow()
		}
	}
	n.Sandbox(t, "down")
	nothingLeft(t, before, n.Dir)
}

// helm runs a helm command on the tests' release.
func (n *node) helm(t *testing.T, command string, args ...string) string {
	t.Helper()
	args = append([]string{command, "tidekeeper"}, args...)
	out, err := framework.Helm(t, append(args, "--namespace", framework.ManagerNamespace, "--kubeconfig", n.Kubeconfig)...)
	if err != nil {
		t.Fatalf("helm %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

// installChart installs the release's packaged chart, which references the image by digest, into a
// namespace that enforces the restricted Pod Security Standard.
func (n *node) installChart(t *testing.T) {
	n.loadRelease(t)
	n.load(t, "tidekeeper:next", "TIDEKEEPER_BIN", "tidekeeper")
	n.Sandbox(t, "nodes", "load-image", "app:1", framework.Build(t, "./test/node/app"))
	n.create(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: framework.ManagerNamespace, Labels: map[string]string{"pod-security.kubernetes.io/enforce": "restricted"},
	}})
	n.helm(t, "install", released(t, "tidekeeper-"+strings.TrimPrefix(releaseVersion, "v")+".tgz"), "--wait")
	// Helm waits until both pods are ready.
	pods, err := n.managers(t)
	if err != nil {
		t.Fatal(err)
	}
	if pods[0].Spec.NodeName == pods[1].Spec.NodeName {
		t.Errorf("both managers are on %s", pods[0].Spec.NodeName)
	}
	framework.Eventually(t, "one of them leads", func() error {
		_, err := n.leader(t)
		return err
	})
	n.noWarnings(t)
}

func (n *node) helmTest(t *testing.T) {
	if out := n.helm(t, "test"); !strings.Contains(out, "Succeeded") {
		t.Errorf("helm test says\n%s", out)
	}
	if started := n.startedBy(t, framework.ManagerNamespace, "tidekeeper-check"); len(started) != 1 {
		t.Errorf("kubelets have started %v, want one pod", started)
	}
}

// upgradeWhileRestarting upgrades the chart while the manager restarts a workload. The new
// version's manager completes the restart, which must happen exactly once.
func (n *node) upgradeWhileRestarting(t *testing.T) {
	// The pods are replaced one after the other, so that the restart takes longer than the upgrade.
	d := web("web", 3, 30*time.Second)
	n.deploy(t, d)
	restart, tick := n.requestRestart(t, "web")
	framework.Eventually(t, "the restart is under way", func() error {
		if n.Refresh(t, restart); restart.Status.Active == nil || len(n.RestartedAt(t, d)) == 0 {
			return errors.New("it is not")
		}
		return nil
	})
	n.helm(t, "upgrade", framework.Chart(), "--set=image.tag=next", "--wait")
	record := n.awaitRecord(t, restart)

	lease := n.lease(t)
	if acquired := lease.Spec.AcquireTime; acquired.Before(new(metav1.NewMicroTime(record.StartedTime.Time))) || acquired.After(record.CompletedTime.Time) {
		t.Errorf("a manager took over at %s, and the restart was under way from %s to %s", acquired, record.StartedTime, record.CompletedTime)
	}
	leader, err := n.leader(t)
	if err != nil {
		t.Fatal(err)
	}
	pods, err := n.managers(t)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(pods, func(p corev1.Pod) bool { return p.Name == leader && p.Spec.Containers[0].Image == "tidekeeper:next" }) {
		t.Errorf("the leader %s is not of the next version", leader)
	}
	for _, problem := range framework.AllDecided([]time.Time{tick}, restart.Status.History, n.RestartedAt(t, d)) {
		t.Error(problem)
	}
	// Each of the three old and three new pods has started its container once.
	if started := n.startedBy(t, d.Namespace, "web-"); len(started) != 6 {
		t.Errorf("kubelets have started %d pods, want 6: %v", len(started), started)
	}
}

// hangs checks that a hanging leader loses its lease, and that the kubelet restarts its container.
func (n *node) hangs(t *testing.T) {
	first, err := n.leader(t)
	if err != nil {
		t.Fatal(err)
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: framework.ManagerNamespace, Name: first}}
	n.Refresh(t, pod)
	if err := syscall.Kill(processIn(t, pod).pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	n.otherLeads(t, first)
	framework.EventuallyWithin(t, hangs, "the kubelet starts it again", func() error {
		if n.Refresh(t, pod); pod.Status.ContainerStatuses[0].RestartCount != 1 {
			return fmt.Errorf("%+v", pod.Status.ContainerStatuses)
		}
		return nil
	})
	framework.EventuallyWithin(t, startup, "both are ready", func() error {
		_, err := n.managers(t)
		return err
	})
}

// uninstall checks that the chart's uninstall Job runs on a node and removes the pools' settings
// from the nodes.
func (n *node) uninstall(t *testing.T) {
	n.kubectl(t, "label", "node", "--all", "node-role.kubernetes.io/worker=")
	pool := framework.Pool("worker")
	pool.Spec.Labels = map[string]tidekeeperv1.LabelValue{"example.com/worker": "10"}
	pool.Spec.Taints = []tidekeeperv1.Taint{{Key: "example.com/worker", Effect: corev1.TaintEffectNoSchedule}}
	n.create(t, pool)
	set := func(want int) func() error {
		return func() error {
			var list corev1.NodeList
			if err := n.List(t.Context(), &list); err != nil {
				return err
			}
			labels, taints := 0, 0
			for _, node := range list.Items {
				if node.Labels["example.com/worker"] == "10" {
					labels++
				}
				if slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.Key == "example.com/worker" }) {
					taints++
				}
			}
			if labels != want || taints != want {
				return fmt.Errorf("%d nodes have the label and %d the taint, want %d", labels, taints, want)
			}
			return nil
		}
	}
	framework.Eventually(t, "both nodes have the settings of the pool", set(2))
	n.helm(t, "uninstall", "--wait")
	if err := set(0)(); err != nil {
		t.Error(err)
	}
	if started := n.startedBy(t, framework.ManagerNamespace, "tidekeeper-cleanup-"); len(started) != 1 {
		t.Errorf("kubelets have started %v, want one pod of the Job", started)
	}
	if kinds := n.kubectl(t, "get", "crd", "-o", "name"); strings.Contains(kinds, "tidekeeper.dev") {
		t.Errorf("there are the kinds\n%s", kinds)
	}
	framework.Eventually(t, "no pod is left", func() error {
		var left corev1.PodList
		if err := n.List(t.Context(), &left, client.InNamespace(framework.ManagerNamespace)); err != nil || len(left.Items) == 0 {
			return err
		}
		return fmt.Errorf("%d are", len(left.Items))
	})
}
