// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package scale

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/test/framework"
	"tidekeeper.dev/tidekeeper/test/seed"
)

const (
	// variants is the number of different kinds of ScheduledRestarts that [variant] returns.
	variants = 5
	// sharing is the number of workloads that share a ConfigMap and a Secret.
	sharing = 10
)

// triggersAtRest observes an idle manager whose ScheduledRestarts have triggers and conditions of
// all kinds, none of which is due. They replace the ScheduledRestarts of [run.schedulesDue].
func (r *run) triggersAtRest(t *testing.T, files map[string][]byte) {
	t.Helper()
	r.deleteRestarts(t)
	forEach(t, 64, (r.schedules+sharing-1)/sharing, func(i int) error {
		meta := metav1.ObjectMeta{Name: configName(i * sharing), Namespace: metav1.NamespaceDefault}
		if err := r.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: meta, Data: map[string]string{"level": "info"}}); err != nil {
			return err
		}
		return r.Create(t.Context(), &corev1.Secret{ObjectMeta: meta, StringData: map[string]string{"password": fmt.Sprint(i)}})
	})
	r.putDeployments(t, func(i int, container *corev1.Container) {
		local := corev1.LocalObjectReference{Name: configName(i)}
		container.EnvFrom = []corev1.EnvFromSource{
			{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: local}}, {SecretRef: &corev1.SecretEnvSource{LocalObjectReference: local}},
		}
	})
	r.start(t, "--optional-watches=configmaps,secrets", "--pprof-bind-address="+r.pprof)
	statefulSets := seed.StatefulSets(r.pods, r.nodes)
	forEach(t, 64, r.schedules, func(i int) error { return r.Create(t.Context(), variant(i, statefulSets)) })
	r.awaitArmed(t)
	r.atRest(t, "triggers", fmt.Sprintf("%d schedules at rest, with schedules, windows, limits of age, ConfigMaps, Secrets, order and evictions", r.schedules), files)
	r.manager.Stop(t)
}

func configName(i int) string { return fmt.Sprintf("config-%05d", i/sharing) }

// variant returns the ith ScheduledRestart. None of its triggers is due within half a day: its
// schedule ticks later, and no pod has reached its maximum age of a year.
func variant(i int, statefulSets []string) *tidekeeperv1.ScheduledRestart {
	s := restartOf(objectName(i))
	later := s.Spec.Schedule
	s.Spec.Windows = []tidekeeperv1.RestartWindow{{Schedule: later, DurationSeconds: 3600}}
	switch i % variants {
	case 0: // A schedule with a window.
	case 1: // A maximum age of pods, with evictions.
		s.Spec.TargetRef = tidekeeperv1.TargetRef{Kind: "StatefulSet", Name: statefulSets[i/variants%len(statefulSets)]}
		s.Spec.Method, s.Spec.Schedule, s.Spec.Windows = tidekeeperv1.MethodEvict, "", nil
		s.Spec.MaxPodAgeSeconds = tidekeeperv1.MaxPodAgeSeconds
	case 2: // A change of configuration.
		s.Spec.Schedule, s.Spec.Windows = "", nil
		s.Spec.OnConfigChange = tidekeeperv1.ConfigMapsAndSecrets
	case 3: // All triggers, with a window and a predecessor.
		s.Spec.MaxPodAgeSeconds, s.Spec.OnConfigChange = tidekeeperv1.MaxPodAgeSeconds, tidekeeperv1.ConfigMapsAndSecrets
		s.Spec.After = []string{objectName(i - 1)}
	case 4: // A schedule with a window and a predecessor, with evictions.
		s.Spec.Method, s.Spec.After = tidekeeperv1.MethodEvict, []string{objectName(i - 1)}
	}
	return s
}

// deleteRestarts deletes all ScheduledRestarts.
func (r *run) deleteRestarts(t *testing.T) {
	t.Helper()
	if err := r.DeleteAllOf(t.Context(), &tidekeeperv1.ScheduledRestart{}, client.InNamespace(metav1.NamespaceDefault)); err != nil {
		t.Fatal(err)
	}
	framework.EventuallyWithin(t, r.patience, "no ScheduledRestart is left", func() error {
		list := &tidekeeperv1.ScheduledRestartList{}
		if err := r.List(t.Context(), list, client.Limit(1)); err != nil {
			return err
		}
		if len(list.Items) > 0 {
			return fmt.Errorf("%s is", list.Items[0].Name)
		}
		return nil
	})
}

// awaitArmed waits until the status of each ScheduledRestart has the next tick, the next time for
// the pods' age and the content hash, as far as the ScheduledRestart has these triggers.
func (r *run) awaitArmed(t *testing.T) {
	t.Helper()
	framework.EventuallyWithin(t, r.patience, "all triggers wait", func() error {
		list := &tidekeeperv1.ScheduledRestartList{}
		if err := r.List(t.Context(), list); err != nil {
			return err
		}
		for i := range list.Items {
			o := &list.Items[i]
			scheduled := (o.Spec.Schedule != "") == (o.Status.NextScheduleTime != nil)
			// The Deployments have no pods.
			hasPods := o.Spec.TargetRef.Kind == "StatefulSet"
			aged := (o.Spec.MaxPodAgeSeconds > 0 && hasPods) == (o.Status.NextAgeTime != nil)
			changed := (o.Spec.OnConfigChange != "") == (o.Status.ConfigHash != "")
			err := framework.ReadyIs(o.Status.Conditions, o.Generation, tidekeeperv1.ReasonScheduled)
			if err == nil && (!scheduled || !aged || !changed) {
				err = fmt.Errorf("its status is %+v", o.Status)
			}
			if err != nil {
				time.Sleep(time.Second) // sleep: a list of many objects takes CPU time from the measured processes
				return fmt.Errorf("%s does not: %w", o.Name, err)
			}
		}
		return nil
	})
}
