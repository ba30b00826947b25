// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/test/framework"
)

// TestConfigIsMissing deletes a ConfigMap, or a key, that new pods need in order to start. The
// deletion must restart nothing; once it is recreated with other content, the workload must be
// restarted once. The removal of an optional key counts as a change.
func TestConfigIsMissing(t *testing.T) {
	manager := cluster.StartManager(t, withConfig...)
	cluster.AddNodes(t, "missing", 1)
	c := configMap(t, "missing", map[string]string{"needed": "1", "optional": "1"})
	r := configured(t, workload(t, "Deployment", "missing"), "Deployment", "missing", func(spec *corev1.PodSpec) {
		key := func(name string, optional bool) corev1.EnvVar {
			ref := &corev1.ConfigMapKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: "missing"}, Key: name, Optional: &optional}
			return corev1.EnvVar{Name: name, ValueFrom: &corev1.EnvVarSource{ConfigMapKeyRef: ref}}
		}
		spec.Containers[0].Env = []corev1.EnvVar{key("needed", false), key("optional", true)}
	})
	waits := func(message string) {
		t.Helper()
		eventuallyRestart(t, r, framework.Patience, "waits", func() error {
			ready := meta.FindStatusCondition(r.Status.Conditions, "Ready")
			return diff("TargetUnhealthy: a restart is due and waits: "+message, ready.Reason+": "+ready.Message)
		})
		manager.AssertIdle(t)
		if cluster.Refresh(t, r); len(r.Status.History) != 0 || r.Status.Active != nil {
			t.Errorf("it was restarted: %+v", r.Status)
		}
	}

	cluster.Change(t, c, func() { delete(c.Data, "needed") })
	waits("ConfigMap missing has no key needed, and new pods of Deployment missing need it to start")
	cluster.Delete(t, c)
	waits("ConfigMap missing does not exist, and new pods of Deployment missing need it to start")
	c = configMap(t, "missing", map[string]string{"needed": "2", "optional": "1"})
	eventuallyChanged(t, r, 0, tidekeeperv1.OutcomeSucceeded, "")

	cluster.Change(t, c, func() { delete(c.Data, "optional") })
	cluster.Change(t, r, func() { r.Spec.MinIntervalSeconds = 1 })
	eventuallyChanged(t, r, 1, tidekeeperv1.OutcomeSucceeded, "")
	manager.AssertIdle(t)
	if cluster.Refresh(t, r); len(r.Status.History) != 2 {
		t.Errorf("the history is %+v", r.Status.History)
	}
}
