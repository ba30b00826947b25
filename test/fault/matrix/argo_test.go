// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package matrix

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/test/fault/matrix/witness"
	"tidekeeper.dev/tidekeeper/test/framework"
)

// needsArgo installs Argo for the scenarios that have a Rollout. It stays for those that come after
// it on the same cluster.
func (l *testbed) needsArgo(s scenario) {
	if s.argo && !l.argo {
		l.InstallArgo(l.t)
		l.argo = true
	}
}

// rolloutRestart creates a Rollout of two pods with a suspended ScheduledRestart.
func (w *scenarioRun) rolloutRestart() {
	w.nodes(1, "")
	d := framework.Deployment(w.name, 2, framework.App)
	w.Apply(w, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": witness.Rollout.GroupVersion().String(), "kind": witness.Rollout.Kind,
		"metadata": map[string]any{"namespace": d.Namespace, "name": d.Name},
		"spec": map[string]any{
			"replicas": int64(2), "selector": map[string]any{"matchLabels": map[string]any{"app": d.Name}},
			"strategy": map[string]any{"canary": map[string]any{}},
			"template": map[string]any{
				"metadata": map[string]any{"labels": map[string]any{"app": d.Name}},
				"spec":     map[string]any{"containers": []any{map[string]any{"name": "app", "image": "example.com/app:1"}}},
			},
		},
	}})
	w.eventually("the Rollout is healthy", w.rolloutIsHealthy)
	r := framework.ScheduledRestart(w.name)
	r.Spec = tidekeeperv1.ScheduledRestartSpec{
		TargetRef: tidekeeperv1.TargetRef{APIVersion: witness.Rollout.GroupVersion().String(), Kind: witness.Rollout.Kind, Name: w.name}, Suspend: true,
	}
	w.Apply(w, r)
	w.eventually("it waits to be enabled", func() error { return w.restartIs("Suspended") })
	w.outlivePods()
}

// rolloutIsHealthy returns nil if the Rollout has no more to do.
func (w *scenarioRun) rolloutIsHealthy() error {
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(witness.Rollout)
	if err := w.Get(w.Context(), client.ObjectKey{Namespace: metav1.NamespaceDefault, Name: w.name}, o); err != nil {
		return err
	}
	phase, _, _ := unstructured.NestedString(o.Object, "status", "phase")
	observed, _, _ := unstructured.NestedString(o.Object, "status", "observedGeneration")
	if phase != "Healthy" || observed != fmt.Sprint(o.GetGeneration()) {
		return fmt.Errorf("its phase is %q, for generation %q of %d", phase, observed, o.GetGeneration())
	}
	return nil
}

// replaced returns nil if none of the pods from before the tick is left.
func (w *scenarioRun) replaced() error {
	for _, pod := range w.pods() {
		if pod.CreationTimestamp.Time.Before(w.tick) {
			return fmt.Errorf("pod %s is still there", pod.Name)
		}
	}
	return nil
}
