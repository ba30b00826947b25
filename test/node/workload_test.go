// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/test/framework"
)

// web returns a Deployment whose pods take readyAfter to become ready, and are replaced one after
// the other.
func web(name string, replicas int32, readyAfter time.Duration) *appsv1.Deployment {
	d := framework.Deployment(name, replicas, corev1.PodSpec{
		TerminationGracePeriodSeconds: new(int64(5)),
		Containers: []corev1.Container{{
			Name: "app", Image: "app:1", Args: []string{"--ready-after=" + readyAfter.String()},
			ReadinessProbe: &corev1.Probe{
				PeriodSeconds: 1,
				ProbeHandler:  corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/readyz", Port: intstr.FromInt32(8080)}},
			},
		}},
	})
	d.Spec.Strategy.RollingUpdate = &appsv1.RollingUpdateDeployment{MaxSurge: new(intstr.FromInt32(1)), MaxUnavailable: new(intstr.FromInt32(0))}
	return d
}

// deploy creates a Deployment and waits until it is available.
func (n *node) deploy(t *testing.T, d *appsv1.Deployment) {
	t.Helper()
	n.create(t, d)
	n.kubectl(t, "rollout", "status", "deployment/"+d.Name, framework.LongTimeout)
}

// requestRestart requests a restart of a Deployment, and returns its ScheduledRestart and the
// scheduled time (tick).
func (n *node) requestRestart(t *testing.T, name string) (*tidekeeperv1.ScheduledRestart, time.Time) {
	t.Helper()
	restart := framework.ScheduledRestart(name)
	restart.Spec = tidekeeperv1.ScheduledRestartSpec{TargetRef: tidekeeperv1.TargetRef{Kind: "Deployment", Name: name}, Schedule: "0 0 29 2 *"}
	n.create(t, restart)
	return restart, n.RequestRestart(t, restart, time.Now())
}

// awaitRecord waits for the first history record of a ScheduledRestart, and returns it.
func (n *node) awaitRecord(t *testing.T, restart *tidekeeperv1.ScheduledRestart) tidekeeperv1.RestartRecord {
	t.Helper()
	framework.EventuallyWithin(t, 2*startup, "the restart is recorded", func() error {
		if n.Refresh(t, restart); len(restart.Status.History) == 0 {
			return fmt.Errorf("active: %+v", restart.Status.Active)
		}
		return nil
	})
	if record := restart.Status.History[0]; record.Outcome == tidekeeperv1.OutcomeSucceeded {
		return record
	}
	t.Fatalf("the record is %+v", restart.Status.History[0])
	return tidekeeperv1.RestartRecord{}
}

// startedBy returns the pods of a namespace with the given name prefix in which kubelets have
// started a container, according to their events.
func (n *node) startedBy(t *testing.T, namespace, prefix string) map[string]string {
	t.Helper()
	var list corev1.EventList
	if err := n.List(t.Context(), &list, client.InNamespace(namespace)); err != nil {
		t.Fatal(err)
	}
	started := map[string]string{}
	for _, e := range list.Items {
		if e.Reason == "Started" && e.Source.Component == "kubelet" && strings.HasPrefix(e.InvolvedObject.Name, prefix) {
			started[e.InvolvedObject.Name] = e.Source.Host
		}
	}
	return started
}
