// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package scale

import (
	"errors"
	"fmt"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/test/framework"
)

func objectName(i int) string { return fmt.Sprintf("app-%05d", i) }

// restartOf returns the ScheduledRestart for the Deployment with the same name. Its schedule is
// enabled, but ticks only in half a day.
func restartOf(name string) *tidekeeperv1.ScheduledRestart {
	return &tidekeeperv1.ScheduledRestart{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: metav1.NamespaceDefault},
		Spec: tidekeeperv1.ScheduledRestartSpec{
			TargetRef: tidekeeperv1.TargetRef{Kind: "Deployment", Name: name},
			Schedule:  tidekeeperv1.CronExpression(daily(time.Now().Add(12 * time.Hour))),
		},
	}
}

// daily returns a cron schedule that ticks once a day, at the given time.
func daily(at time.Time) string {
	return fmt.Sprintf("%d %d * * *", at.UTC().Minute(), at.UTC().Hour())
}

// deploymentOf returns a Deployment with 0 replicas. The measurement ends with the patch of its
// template, and pods would only take CPU time from the API server and the manager. A restart is
// still a rollout, which creates a ReplicaSet and is followed until completion.
func deploymentOf(name string) *appsv1.Deployment {
	labels := map[string]string{"app": name}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: metav1.NamespaceDefault},
		Spec: appsv1.DeploymentSpec{
			Replicas: new(int32),
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "example.com/app:1"}}},
			},
		},
	}
}

// populate creates ScheduledRestarts, each with its own Deployment, and waits until all have a next
// tick.
func (b *bench) populate(t *testing.T, count int) {
	t.Helper()
	forEach(t, 32, count, func(i int) error {
		return errors.Join(b.Create(t.Context(), deploymentOf(objectName(i))), b.Create(t.Context(), restartOf(objectName(i))))
	})
	b.awaitScheduled(t, count)
	framework.EventuallyWithin(t, 10*time.Minute, "all Deployments are complete", func() error {
		list := &appsv1.DeploymentList{}
		if err := b.List(t.Context(), list, client.InNamespace(metav1.NamespaceDefault)); err != nil {
			return err
		}
		for _, d := range list.Items {
			if d.Status.ObservedGeneration < d.Generation {
				return fmt.Errorf("deployment %s is not", d.Name)
			}
		}
		return nil
	})
}

// awaitScheduled waits until the given number of ScheduledRestarts wait for their tick.
func (b *bench) awaitScheduled(t *testing.T, count int) {
	t.Helper()
	framework.EventuallyWithin(t, 10*time.Minute, "all schedules run", func() error {
		list := &tidekeeperv1.ScheduledRestartList{}
		if err := b.List(t.Context(), list); err != nil {
			return err
		}
		scheduled := 0
		for _, r := range list.Items {
			if c := meta.FindStatusCondition(r.Status.Conditions, "Ready"); c != nil && c.Reason == "Scheduled" {
				scheduled++
			}
		}
		if scheduled != count {
			time.Sleep(time.Second) // sleep: a list of many objects takes CPU time from the measured processes
			return fmt.Errorf("%d of %d do", scheduled, count)
		}
		return nil
	})
}
