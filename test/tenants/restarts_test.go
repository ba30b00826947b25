// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package tenants

import (
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/test/framework"
)

// ask adds a request for a restart at the given time, and returns r.
func ask(r *tidekeeperv1.ScheduledRestart, when string) *tidekeeperv1.ScheduledRestart {
	metav1.SetMetaDataAnnotation(&r.ObjectMeta, tidekeeperv1.RestartNowAnnotation, when)
	return r
}

func now() string { return time.Now().UTC().Format(time.RFC3339) }

// absurdTimes requests restarts for times that cannot be stored. The manager must report them as
// invalid. They must not result in status writes that are always rejected, or in a slot that is
// never released. These schedules continue every minute.
func (s *stage) absurdTimes(t *testing.T) {
	var all []*tidekeeperv1.ScheduledRestart
	for _, namespace := range evil {
		for i, when := range []string{
			"0000-01-01T00:00:00+23:59", "9999-12-31T23:59:59-23:59", "0000-01-01T00:00:00Z", "0001-01-01T00:00:00Z",
			"9999-12-31T23:59:59Z", "1969-12-31T23:59:59Z", "2262-04-12T00:00:00Z",
		} {
			name := fmt.Sprint("absurd-", i)
			r := ask(restart(namespace, name, func(r *tidekeeperv1.ScheduledRestart) { r.Spec.Precondition = tidekeeperv1.PreconditionNone }), when)
			s.keeps(t, workload(namespace, name, 0, nil), r)
			all = append(all, r)
		}
	}
	for _, r := range all {
		framework.Eventually(t, r.Name+" has an event", func() error {
			cluster.Refresh(t, r)
			if len(cluster.Events(t, "ScheduledRestart", r.Name)) == 0 && len(r.Status.History) == 0 {
				return errNotYet
			}
			return nil
		})
		for _, event := range cluster.Events(t, "ScheduledRestart", r.Name) {
			if strings.Contains(event, "ReconcileFailed") {
				t.Errorf("%s of %s: %s", r.Annotations[tidekeeperv1.RestartNowAnnotation], r.Name, event)
			}
		}
	}
}

// paddedObject makes a ScheduledRestart too large for a status write. It must not keep its slot
// forever. Its schedule continues every minute.
func (s *stage) paddedObject(t *testing.T) {
	most := 0
	for _, namespace := range evil {
		for i := range slots / 2 {
			name := fmt.Sprint("padded-", i)
			r := restart(namespace, name, func(r *tidekeeperv1.ScheduledRestart) { r.Spec.Precondition = tidekeeperv1.PreconditionNone })
			s.keeps(t, workload(namespace, name, 0, nil), r)
			if most == 0 {
				most = s.mostFinalizers(t, r)
			}
			framework.Eventually(t, "it is as large as possible", func() error {
				err := s.pad(t, r, most)
				if err != nil {
					// The object's status may have grown meanwhile, so fewer finalizers fit.
					most = s.mostFinalizers(t, r)
				}
				return err
			})
		}
	}
}

// pad sets the given number of finalizers on an object. The API server does not limit their number.
// They are as long as possible, because the API server needs seconds for tens of thousands.
func (s *stage) pad(t *testing.T, r *tidekeeperv1.ScheduledRestart, finalizers int) error {
	t.Helper()
	latest := &tidekeeperv1.ScheduledRestart{}
	if err := s.mallory.Get(t.Context(), client.ObjectKeyFromObject(r), latest); err != nil {
		return err
	}
	before := client.MergeFrom(latest.DeepCopy())
	latest.Finalizers = make([]string, finalizers)
	for i := range latest.Finalizers {
		latest.Finalizers[i] = fmt.Sprintf("%s/%08d%s", strings.Repeat("x", 253), i, strings.Repeat("y", 55))
	}
	return s.mallory.Patch(t.Context(), latest, before)
}

// mostFinalizers finds the largest number of finalizers that the API server accepts on an object.
func (s *stage) mostFinalizers(t *testing.T, r *tidekeeperv1.ScheduledRestart) int {
	t.Helper()
	least, most := 0, 8000
	for least+1 < most {
		if n := (least + most) / 2; s.pad(t, r, n) == nil {
			least = n
		} else {
			most = n
		}
	}
	if least == 0 {
		t.Fatal("an object can have no finalizers")
	}
	t.Logf("%d finalizers", least)
	return least
}

// hogs creates schedules whose restarts take longer than the interval between ticks. The restarts
// must not keep their slots forever. These schedules continue until the end of the tests.
func (s *stage) hogs(t *testing.T) {
	for _, namespace := range evil {
		for i := range slots / 2 {
			name := fmt.Sprint("hog-", i)
			d := workload(namespace, name, 1, func(template *corev1.PodTemplateSpec) {
				// The new pod is created when the old pod has terminated, after more than a minute.
				template.Annotations = map[string]string{"sandbox.tidekeeper.dev/terminated-after": "65s"}
				template.Spec.TerminationGracePeriodSeconds = new(int64(70))
			}).(*appsv1.Deployment)
			d.Spec.Strategy = appsv1.DeploymentStrategy{Type: appsv1.RecreateDeploymentStrategyType}
			s.keeps(t, d, ask(restart(namespace, name, nil), now()))
		}
	}
}

// neverEnding returns a healthy Deployment whose restarts never complete: the new pod needs the old
// pod's host port, but the old pod stays until the new pod is ready.
func neverEnding(namespace, name string, port int32) *appsv1.Deployment {
	d := workload(namespace, name, 1, func(template *corev1.PodTemplateSpec) {
		template.Spec.NodeSelector = map[string]string{corev1.LabelHostname: "herd-1"}
		template.Spec.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: port, HostPort: port}}
	}).(*appsv1.Deployment)
	d.Spec.ProgressDeadlineSeconds = new(int32(2147483647))
	d.Spec.Strategy.RollingUpdate = &appsv1.RollingUpdateDeployment{MaxSurge: new(intstr.FromInt32(1)), MaxUnavailable: new(intstr.FromInt32(0))}
	return d
}

// neverReady creates restarts that never complete. They must release their slots after the time
// that the cluster's administrator has configured, regardless of the tenant's settings. These
// schedules continue until the end of the tests.
func (s *stage) neverReady(t *testing.T) {
	for n, namespace := range evil {
		for i := range slots / 2 {
			name := fmt.Sprint("never-", i)
			s.keeps(t, neverEnding(namespace, name, int32(20000+100*n+i)), ask(restart(namespace, name, func(r *tidekeeperv1.ScheduledRestart) {
				r.Spec.ProgressDeadlineSeconds = 86400
				r.Spec.FailureLimit = 100
			}), now()))
		}
	}
}

// backDated requests restarts for yesterday. They must not start before a restart that has waited
// longer.
func (s *stage) backDated(t *testing.T) {
	for n, namespace := range evil {
		// Request more restarts than the number that may be sent before the neighbour's restart.
		for i := range turns * 5 / 4 {
			name := fmt.Sprint("yesterday-", i)
			s.keeps(t, neverEnding(namespace, name, int32(21000+100*n+i)), ask(restart(namespace, name, func(r *tidekeeperv1.ScheduledRestart) {
				r.Spec.ProgressDeadlineSeconds = 86400
				r.Spec.StartingDeadlineSeconds = 86400
				r.Spec.Suspend = true
			}), time.Now().Add(-23*time.Hour).UTC().Format(time.RFC3339)))
		}
	}
}

// neverStart creates schedules whose ticks are missed every minute, which must cost little. These
// schedules continue until the end of the tests.
func (s *stage) neverStart(t *testing.T) {
	for i := range 300 {
		s.keeps(t, restart(evil[0], fmt.Sprint("absent-", i), func(r *tidekeeperv1.ScheduledRestart) { r.Spec.StartingDeadlineSeconds = 1 }))
	}
}
