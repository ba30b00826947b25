// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/test/framework"
)

// withConfig lists flags for a manager that may read ConfigMaps and Secrets, and that waits as
// briefly as possible for a burst of edits to end.
var withConfig = []string{"--optional-watches=configmaps,secrets", "--restart-change-settle=2s"}

// configMap creates a ConfigMap with the given data in the namespace default, and returns it.
func configMap(t *testing.T, name string, data map[string]string) *corev1.ConfigMap {
	t.Helper()
	c := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: metav1.NamespaceDefault}, Data: data}
	cluster.Apply(t, c)
	return c
}

// configured edits a workload's pod template with the function `configure`. It then creates a
// ScheduledRestart without a schedule that restarts the workload when its ConfigMaps or Secrets
// change, and waits until the status has a hash of their content.
func configured(t *testing.T, o client.Object, kind, name string, configure func(*corev1.PodSpec)) *tidekeeperv1.ScheduledRestart {
	t.Helper()
	cluster.Change(t, o, func() {
		switch o := o.(type) {
		case *appsv1.Deployment:
			configure(&o.Spec.Template.Spec)
		case *appsv1.StatefulSet:
			configure(&o.Spec.Template.Spec)
		case *appsv1.DaemonSet:
			configure(&o.Spec.Template.Spec)
		}
	})
	rolledOut(t, kind, name)
	r := restartOf(kind, name)
	r.Spec.Suspend, r.Spec.OnConfigChange = false, tidekeeperv1.ConfigMapsAndSecrets
	cluster.Apply(t, r)
	eventuallyRestart(t, r, framework.Patience, "knows the content", func() error {
		if r.Status.ConfigHash == "" {
			return fmt.Errorf("it does not: %+v", r.Status)
		}
		return framework.ReadyIs(r.Status.Conditions, r.Generation, "Scheduled")
	})
	return r
}

func allOf(name string) func(*corev1.PodSpec) {
	return func(spec *corev1.PodSpec) {
		spec.Containers[0].EnvFrom = []corev1.EnvFromSource{{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: name}}}}
	}
}

func setKey(t *testing.T, c *corev1.ConfigMap, key, value string) {
	t.Helper()
	cluster.Change(t, c, func() { c.Data[key] = value })
}

// eventuallyChanged waits until the history has others+1 records, the latest of which is for a
// restart after a configuration change, with the given outcome and reason.
func eventuallyChanged(t *testing.T, r *tidekeeperv1.ScheduledRestart, others int, outcome tidekeeperv1.Outcome, reason string) {
	t.Helper()
	eventuallyRestart(t, r, framework.Patience, "has the outcome of the change", func() error {
		if len(r.Status.History) <= others {
			return fmt.Errorf("not yet: %+v", r.Status)
		}
		last := r.Status.History[0]
		return diff(fmt.Sprint("Change ", outcome, " ", reason), fmt.Sprint(last.Trigger, " ", last.Outcome, " ", last.Reason))
	})
	if last := r.Status.History[0]; last.ConfigHash != r.Status.ConfigHash {
		t.Errorf("%s: the record is about the content %s, and the pods have %s", r.Name, last.ConfigHash, r.Status.ConfigHash)
	}
}

// TestConfigChange checks that a change of content that the pods use restarts them once, regardless
// of the number of edits, and that a change of unused content does not.
func TestConfigChange(t *testing.T) {
	proxy := cluster.StartProxy(t, "")
	manager := cluster.StartManager(t, append([]string{"--kubeconfig", proxy.Kubeconfig}, withConfig...)...)
	cluster.AddNodes(t, "changed", 1)
	c := configMap(t, "changed", map[string]string{"used": "1", "unused": "1", "file": "1"})
	s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "changed", Namespace: metav1.NamespaceDefault}, StringData: map[string]string{"password": "1"}}
	cluster.Apply(t, s)
	local := corev1.LocalObjectReference{Name: "changed"}

	byKey := configured(t, workload(t, "Deployment", "changed-key"), "Deployment", "changed-key", func(spec *corev1.PodSpec) {
		spec.Containers[0].Env = []corev1.EnvVar{{Name: "V", ValueFrom: &corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{LocalObjectReference: local, Key: "used"}}}}
	})
	bySecret := configured(t, workload(t, "StatefulSet", "changed-secret"), "StatefulSet", "changed-secret", func(spec *corev1.PodSpec) {
		spec.Containers[0].EnvFrom = []corev1.EnvFromSource{{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: local}}}
	})
	byFile := configured(t, workload(t, "DaemonSet", "changed-file"), "DaemonSet", "changed-file", func(spec *corev1.PodSpec) {
		projected := corev1.VolumeProjection{ConfigMap: &corev1.ConfigMapProjection{LocalObjectReference: local, Items: []corev1.KeyToPath{{Key: "file", Path: "f"}}}}
		spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{projected}}}}}
	})

	// The watches are frozen so that the manager sees all edits at the same time. The last edit of
	// each key counts; edits of the ConfigMap "unused" do not count.
	proxy.Freeze(t, "match: {resources: [configmaps, secrets]}")
	for _, value := range []string{"2", "3", "4"} {
		cluster.Change(t, c, func() { c.Data["unused"], c.Data["used"] = value, value })
	}
	cluster.Change(t, s, func() { s.StringData = nil; s.Data["password"] = []byte("2") })
	proxy.Thaw(t)
	eventuallyChanged(t, byKey, 0, tidekeeperv1.OutcomeSucceeded, "")
	eventuallyChanged(t, bySecret, 0, tidekeeperv1.OutcomeSucceeded, "")
	setKey(t, c, "file", "2")
	eventuallyChanged(t, byFile, 0, tidekeeperv1.OutcomeSucceeded, "")
	manager.AssertIdle(t)
	for _, r := range []*tidekeeperv1.ScheduledRestart{byKey, bySecret, byFile} {
		if cluster.Refresh(t, r); len(r.Status.History) != 1 {
			t.Errorf("%s: the history is %+v", r.Name, r.Status.History)
		}
	}
}

// TestConfigChangeIsServedOtherwise checks that a change that is reverted restarts nothing, and
// that a change after which another rollout has already replaced the pods restarts nothing either.
func TestConfigChangeIsServedOtherwise(t *testing.T) {
	proxy := cluster.StartProxy(t, "")
	manager := cluster.StartManager(t, append([]string{"--kubeconfig", proxy.Kubeconfig}, withConfig...)...)
	cluster.AddNodes(t, "served", 1)
	c := configMap(t, "served", map[string]string{"a": "1"})
	d := workload(t, "Deployment", "served").(*appsv1.Deployment)
	r := configured(t, d, "Deployment", "served", allOf("served"))
	first := r.Status.ConfigHash

	proxy.Freeze(t, "match: {resources: [configmaps]}")
	setKey(t, c, "a", "2")
	setKey(t, c, "a", "1")
	proxy.Thaw(t)
	manager.AssertIdle(t)
	if cluster.Refresh(t, r); len(r.Status.History) != 0 || r.Status.ConfigHash != first {
		t.Errorf("taken back at once: %+v", r.Status)
	}

	cluster.Change(t, d, func() { d.Spec.Paused = true })
	setKey(t, c, "a", "2")
	eventuallyRestartIs(t, r, "TargetPaused")
	if r.Status.NextChangeTime == nil {
		t.Error("it does not say since when it waits")
	}
	setKey(t, c, "a", "1")
	eventuallyChanged(t, r, 0, tidekeeperv1.OutcomeSkipped, "Withdrawn")

	setKey(t, c, "a", "3")
	eventuallyRestartIs(t, r, "TargetPaused")
	cluster.Change(t, d, func() {
		d.Spec.Paused = false
		metav1.SetMetaDataAnnotation(&d.Spec.Template.ObjectMeta, "example.com/deployed", "again")
	})
	eventuallyChanged(t, r, 1, tidekeeperv1.OutcomeSkipped, "AlreadyRestarted")
	manager.AssertIdle(t)
	if at := restartedAt(t, d); at != "" {
		t.Errorf("it was restarted for %s", at)
	}
}

// TestConfigChangeWhileAway checks that a restarted manager restarts workloads once for each change
// that was made while it was stopped, unless another rollout has already replaced the pods.
func TestConfigChangeWhileAway(t *testing.T) {
	manager := cluster.StartManager(t, withConfig...)
	cluster.AddNodes(t, "away", 1)
	left, cut := configMap(t, "away-left", map[string]string{"a": "1"}), configMap(t, "away-cut", map[string]string{"a": "1", "b": "1"})
	taken := configMap(t, "away-taken", map[string]string{"a": "1"})
	forgotten := configured(t, workload(t, "Deployment", "away-left"), "Deployment", "away-left", allOf("away-left"))
	shortened := configured(t, workload(t, "Deployment", "away-cut"), "Deployment", "away-cut", allOf("away-cut"))
	d := workload(t, "Deployment", "away-taken").(*appsv1.Deployment)
	served := configured(t, d, "Deployment", "away-taken", allOf("away-taken"))
	manager.Stop(t)

	// Timestamps are in whole seconds. An edit in the second in which the status got its hash could
	// count as earlier than the hash.
	nextSecond(t)
	setKey(t, left, "a", "2")
	// managedFields do not record the time of an edit that only removes keys, and the pods are
	// newer than the last recorded time.
	cluster.Change(t, cut, func() { delete(cut.Data, "b") })
	setKey(t, taken, "a", "2")
	// A pod created in the same second as an edit counts as older than the edit.
	nextSecond(t)
	cluster.Change(t, d, func() {
		metav1.SetMetaDataAnnotation(&d.Spec.Template.ObjectMeta, "example.com/deployed", "again")
	})
	rolledOut(t, "Deployment", "away-taken")

	manager = cluster.StartManager(t, withConfig...)
	eventuallyChanged(t, forgotten, 0, tidekeeperv1.OutcomeSucceeded, "")
	eventuallyChanged(t, shortened, 0, tidekeeperv1.OutcomeSucceeded, "")
	manager.AssertIdle(t)
	manager.Stop(t)
	manager = cluster.StartManager(t, withConfig...)
	manager.AssertIdle(t)
	for r, want := range map[*tidekeeperv1.ScheduledRestart]int{forgotten: 1, shortened: 1, served: 0} {
		if cluster.Refresh(t, r); len(r.Status.History) != want {
			t.Errorf("%s: the history is %+v", r.Name, r.Status.History)
		}
	}
}

// TestConfigChangeWithoutTheRight checks that a manager that may not read ConfigMaps and Secrets
// reports that in one line, and does not read them.
func TestConfigChangeWithoutTheRight(t *testing.T) {
	audit := cluster.Audit(t, "tidekeeper/")
	cluster.StartManager(t)
	cluster.AddNodes(t, "unread", 1)
	workload(t, "Deployment", "unread")
	r := restartOf("Deployment", "unread")
	r.Spec.Suspend, r.Spec.OnConfigChange = false, tidekeeperv1.ConfigMapsOnly
	cluster.Apply(t, r)
	eventuallyRestartIs(t, r, "ConfigNotWatched")
	want := "onConfigChange is ConfigMaps, but the manager does not watch ConfigMaps: start it with --optional-watches=configmaps, or change onConfigChange"
	if ready := meta.FindStatusCondition(r.Status.Conditions, "Ready"); ready.Message != want {
		t.Errorf("it says %q, want %q", ready.Message, want)
	}
	for _, request := range audit.Requests(t) {
		if request.Resource == "configmaps" || request.Resource == "secrets" {
			t.Errorf("the manager has sent %s %s", request.Verb, request.Resource)
		}
	}
	wrong := client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"onConfigChange":"Everything"}}`))
	if err := cluster.Patch(t.Context(), r, wrong); err == nil || !strings.Contains(err.Error(), `spec.onConfigChange: Unsupported value: "Everything": supported values: "ConfigMaps", "ConfigMapsAndSecrets"`) {
		t.Errorf("a wrong value: %v", err)
	}
}
