// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/test/framework"
)

// forEachKind runs a test for each kind of workload that can opt in. It passes a name derived from
// the test's name and the kind.
func forEachKind(t *testing.T, test func(t *testing.T, kind, name string)) {
	t.Helper()
	for _, kind := range []string{"Deployment", "StatefulSet", "DaemonSet"} {
		t.Run(kind, func(t *testing.T) {
			name := strings.ToLower(strings.NewReplacer("Test", "", "_", "", "/", "-").Replace(t.Name()))
			test(t, kind, name)
		})
	}
}

// optInWorkload returns a workload without pods. The annotations are alternating keys and values.
func optInWorkload(kind, name string, annotations ...string) client.Object {
	d := deployment(name, 0, corev1.PodSpec{
		// No node has this label, so a DaemonSet has no pods.
		NodeSelector: map[string]string{"example.com/none": ""},
		Containers:   []corev1.Container{{Name: "app", Image: "example.com/app:1"}},
	})
	var o client.Object = d
	switch kind {
	case "StatefulSet":
		o = &appsv1.StatefulSet{ObjectMeta: d.ObjectMeta, Spec: appsv1.StatefulSetSpec{
			Replicas: d.Spec.Replicas, Selector: d.Spec.Selector, Template: d.Spec.Template,
		}}
	case "DaemonSet":
		o = &appsv1.DaemonSet{ObjectMeta: d.ObjectMeta, Spec: appsv1.DaemonSetSpec{
			Selector: d.Spec.Selector, Template: d.Spec.Template,
		}}
	}
	o.SetAnnotations(map[string]string{})
	for pair := range slices.Chunk(annotations, 2) {
		o.GetAnnotations()[pair[0]] = pair[1]
	}
	return o
}

// annotate sets annotations in a single write. The annotations are alternating keys and values; an
// empty value removes the annotation.
func annotate(t *testing.T, o client.Object, annotations ...string) {
	t.Helper()
	cluster.Change(t, o, func() {
		all := o.GetAnnotations()
		if all == nil {
			all = map[string]string{}
		}
		for pair := range slices.Chunk(annotations, 2) {
			if pair[1] == "" {
				delete(all, pair[0])
			} else {
				all[pair[0]] = pair[1]
			}
		}
		o.SetAnnotations(all)
	})
}

// restartNamed returns the ScheduledRestart with the given name, or nil if there is none.
func restartNamed(t *testing.T, name string) *tidekeeperv1.ScheduledRestart {
	t.Helper()
	restart := &tidekeeperv1.ScheduledRestart{}
	err := cluster.Get(t.Context(), client.ObjectKey{Namespace: metav1.NamespaceDefault, Name: name}, restart)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	return restart
}

// wanted holds the expected values of the fields that an opt-in sets. Empty strings mean the
// defaults.
type wanted struct {
	Schedule, TimeZone string
	MaxPodAgeSeconds   int32
	Suspend            bool
}

func wantedOf(restart *tidekeeperv1.ScheduledRestart) wanted {
	w := wanted{Schedule: string(restart.Spec.Schedule), TimeZone: restart.Spec.TimeZone, MaxPodAgeSeconds: restart.Spec.MaxPodAgeSeconds, Suspend: restart.Spec.Suspend}
	if w.Schedule == "0 0 * * *" {
		w.Schedule = ""
	}
	if w.TimeZone == "UTC" {
		w.TimeZone = ""
	}
	return w
}

// eventuallyOptIn waits until the named ScheduledRestart has the wanted field values, and returns
// it.
func eventuallyOptIn(t *testing.T, name string, want wanted) *tidekeeperv1.ScheduledRestart {
	t.Helper()
	var restart *tidekeeperv1.ScheduledRestart
	framework.Eventually(t, "ScheduledRestart "+name+" is as wanted", func() error {
		if restart = restartNamed(t, name); restart == nil {
			return errors.New("it does not exist")
		}
		return diff(want, wantedOf(restart))
	})
	return restart
}

// settled waits until the opt-in controller has seen all earlier writes. It sees the writes to each
// kind in order.
func settled(t *testing.T) {
	t.Helper()
	for _, kind := range []string{"Deployment", "StatefulSet", "DaemonSet"} {
		w := optInWorkload(kind, fmt.Sprintf("settled-%d", time.Now().UnixNano()), optInKey, "true")
		cluster.Apply(t, w)
		eventuallyOptIn(t, w.GetName(), wanted{Suspend: true})
	}
}

// writesTo returns the manager's writes to the given resource since the last call.
func writesTo(t *testing.T, audit *framework.Audit, resource string) []framework.Request {
	t.Helper()
	return slices.DeleteFunc(audit.Requests(t), func(r framework.Request) bool {
		return !r.Writes() || r.Resource != resource || r.Subresource != ""
	})
}
