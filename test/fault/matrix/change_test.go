// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package matrix

import (
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/test/fault/matrix/witness"
	"tidekeeper.dev/tidekeeper/test/framework"
)

// changeSettle is long enough for the user to say, after a change, which tick it is.
const changeSettle = 4 * time.Second

// followsChanges are the flags of a manager that restarts workloads for changes.
var followsChanges = []string{"--controllers=*,configmap-change", "--restart-change-settle=" + changeSettle.String()}

func (w *scenarioRun) configMap() *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: w.name, Namespace: metav1.NamespaceDefault}, Data: map[string]string{"a": "1"}}
}

// configuredRestart creates a Deployment that uses a ConfigMap, and a ScheduledRestart that
// follows it and has no schedule.
func (w *scenarioRun) configuredRestart() {
	w.Apply(w, w.configMap())
	w.deployment("")
	d := framework.Deployment(w.name, 0, framework.App)
	w.Change(w, d, func() {
		d.Spec.Template.Spec.Containers[0].EnvFrom = []corev1.EnvFromSource{{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: w.name}}}}
	})
	w.rolledOut("deployment")
	r := framework.ScheduledRestart(w.name)
	r.Spec = tidekeeperv1.ScheduledRestartSpec{TargetRef: tidekeeperv1.TargetRef{Kind: "Deployment", Name: w.name}, OnConfigChange: tidekeeperv1.ConfigMapsOnly}
	w.Apply(w, r)
	w.eventually("it knows the content", func() error {
		if w.Refresh(w, r); r.Status.ConfigHash == "" {
			return errors.New("it does not")
		}
		return w.restartIs("Scheduled")
	})
}

// changeConfig changes the ConfigMap, so that the pods have to be restarted in some seconds.
func (w *scenarioRun) changeConfig() {
	c := w.configMap()
	w.Change(w, c, func() { c.Data["a"] = "2" })
	w.Refresh(w, c)
	for _, fields := range c.ManagedFields {
		if at := fields.Time.UTC().Add(changeSettle); at.After(w.tick) {
			w.tick = at
		}
	}
	r := framework.ScheduledRestart(w.name)
	w.Change(w, r, func() { metav1.SetMetaDataAnnotation(&r.ObjectMeta, witness.OwnTick, w.tick.Format(time.RFC3339)) })
}
