// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/test/framework"
)

// rolloutCRD returns the CRD of Argo's kind Rollout, reduced to the parts that these tests need.
func rolloutCRD(t *testing.T) client.Object {
	t.Helper()
	text, err := os.ReadFile("testdata/rollout_crd.yaml")
	if err != nil {
		t.Fatal(err)
	}
	crd := &unstructured.Unstructured{}
	if err := yaml.Unmarshal(text, crd); err != nil {
		t.Fatal(err)
	}
	return crd
}

// installRollouts installs the Rollout CRD and creates a Rollout once the kind is served.
func installRollouts(t *testing.T, name string, annotations map[string]string) (crd client.Object, rollout *unstructured.Unstructured) {
	t.Helper()
	crd = rolloutCRD(t)
	cluster.Apply(t, crd)
	rollout = &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "argoproj.io/v1alpha1", "kind": "Rollout",
		"metadata": map[string]any{"namespace": metav1.NamespaceDefault, "name": name},
		"spec":     map[string]any{"replicas": int64(2), "selector": map[string]any{"matchLabels": map[string]any{"app": name}}},
	}}
	rollout.SetAnnotations(annotations)
	framework.Eventually(t, "Rollouts are served", func() error {
		return client.IgnoreAlreadyExists(cluster.Create(t.Context(), rollout))
	})
	argo(t, rollout)
	return crd, rollout
}

// argo updates a Rollout's status as Argo's controller does once all pods are restarted.
func argo(t *testing.T, rollout *unstructured.Unstructured) {
	t.Helper()
	cluster.Refresh(t, rollout)
	before := rollout.DeepCopy()
	at, _, _ := unstructured.NestedString(rollout.Object, "spec", "restartAt")
	status := map[string]any{
		"observedGeneration": fmt.Sprint(rollout.GetGeneration()), "updatedReplicas": int64(2), "availableReplicas": int64(2), "phase": "Healthy",
	}
	if at != "" {
		status["restartedAt"] = at
	}
	rollout.Object["status"] = status
	if err := cluster.Status().Patch(t.Context(), rollout, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
}

// removeRollouts removes the Rollout CRD and thereby all Rollouts.
func removeRollouts(t *testing.T, crd client.Object) {
	t.Helper()
	cluster.Delete(t, crd)
	framework.Eventually(t, "the CRD is gone", func() error {
		err := cluster.Get(context.WithoutCancel(t.Context()), client.ObjectKeyFromObject(crd), crd)
		if err == nil {
			return fmt.Errorf("it still exists")
		}
		return client.IgnoreNotFound(err)
	})
}

// TestRestartOfAnOptionalKind checks that a target whose kind is not installed is reported, and is
// restarted once the kind is installed. The kind is also removed and installed again while the
// manager is running.
func TestRestartOfAnOptionalKind(t *testing.T) {
	// Without streamed lists, the manager needs its right to list, which the test thereby covers.
	t.Setenv("KUBE_FEATURE_WatchListClient", "false")
	cluster.StartManager(t)
	r := restartOf("Rollout", "canary")
	r.Spec.TargetRef.APIVersion = "argoproj.io/v1alpha1"
	cluster.Apply(t, r)
	isMissing := func(installed bool) {
		t.Helper()
		eventuallyRestart(t, r, framework.Patience, "says whether the CRD is installed", func() error {
			ready := meta.FindStatusCondition(r.Status.Conditions, tidekeeperv1.ConditionReady)
			if ready == nil || ready.Reason != "TargetNotFound" || strings.Contains(ready.Message, "is its CRD installed?") == installed {
				return fmt.Errorf("its conditions are %v", r.Status.Conditions)
			}
			return nil
		})
	}
	for range 2 {
		isMissing(false)
		crd, rollout := installRollouts(t, "canary", nil)
		eventuallyRestartIs(t, r, "Suspended")
		tick := request(t, r)
		eventuallyRestartIs(t, r, "Restarting")
		framework.Eventually(t, "the Rollout has the tick", func() error {
			cluster.Refresh(t, rollout)
			at, _, _ := unstructured.NestedString(rollout.Object, "spec", "restartAt")
			return diff([]string{tick.Format(time.RFC3339), tick.Format(time.RFC3339)}, []string{at, rollout.GetAnnotations()[tidekeeperv1.LastTickAnnotation]})
		})
		if _, has, _ := unstructured.NestedMap(rollout.Object, "spec", "template"); has {
			t.Error("the pod template of a Rollout was patched")
		}
		argo(t, rollout)
		eventuallyOutcome(t, r, tick, tidekeeperv1.OutcomeSucceeded, "")
		cluster.Delete(t, rollout)
		isMissing(true)
		removeRollouts(t, crd)
	}
}

// TestOptInOfAnOptionalKind checks that a Rollout can opt in like any other workload.
func TestOptInOfAnOptionalKind(t *testing.T) {
	cluster.StartManager(t)
	_, rollout := installRollouts(t, "opted", map[string]string{optInKey: "true", scheduleKey: "0 3 * * *"})
	r := framework.ScheduledRestart("opted")
	framework.Eventually(t, "the opt-in has created a ScheduledRestart", func() error {
		return cluster.Get(t.Context(), client.ObjectKeyFromObject(r), r)
	})
	want := tidekeeperv1.TargetRef{APIVersion: "argoproj.io/v1alpha1", Kind: "Rollout", Name: "opted"}
	if err := diff(want, r.Spec.TargetRef); err != nil {
		t.Errorf("the target is %v", err)
	}
	if !metav1.IsControlledBy(r, rollout) {
		t.Errorf("its owners are %v", r.OwnerReferences)
	}
}
