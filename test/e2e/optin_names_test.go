// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/test/framework"
)

// TestOptIn_TwoKindsOfOneName checks that workloads of different kinds with the same name each get
// a ScheduledRestart. A ScheduledRestart keeps its name, even when a shorter name becomes free.
func TestOptIn_TwoKindsOfOneName(t *testing.T) {
	cluster.StartManager(t)
	const name = "s42-two"
	first := optInWorkload("Deployment", name, optInKey, "true")
	cluster.Apply(t, first)
	eventuallyOptIn(t, name, wanted{Suspend: true})
	second := optInWorkload("StatefulSet", name, optInKey, "true", scheduleKey, "0 3 * * *")
	cluster.Apply(t, second)
	made := eventuallyOptIn(t, name+"-statefulset", wanted{Schedule: "0 3 * * *"})
	if err := errors.Join(diff(tidekeeperv1.TargetRef{Kind: "StatefulSet", Name: name}, made.Spec.TargetRef),
		diff(true, metav1.IsControlledBy(made, second))); err != nil {
		t.Errorf("its target and owner %v", err)
	}
	cluster.EventuallyEvent(t, "StatefulSet", name, "Normal ScheduledRestartCreated: created ScheduledRestart "+name+
		`-statefulset, as the name `+name+` is taken: enabled, schedule "0 3 * * *"`)
	if restart := restartNamed(t, name); restart.Spec.TargetRef.Kind != "Deployment" || !restart.Spec.Suspend {
		t.Errorf("the second uses the name of the first: %+v", restart.Spec)
	}

	// Annotations take effect on the ScheduledRestart with the longer name, which keeps its name.
	annotate(t, first, optInKey, "")
	eventuallyGone(t, framework.ScheduledRestart(name))
	annotate(t, second, scheduleKey, "0 4 * * *")
	if got := eventuallyOptIn(t, name+"-statefulset", wanted{Schedule: "0 4 * * *"}); got.UID != made.UID {
		t.Error("it was created again")
	}
	if restart := restartNamed(t, name); restart != nil {
		t.Errorf("there is another one: %+v", restart.Spec)
	}
	// The next ScheduledRestart gets the free short name.
	third := optInWorkload("DaemonSet", name, optInKey, "true")
	cluster.Apply(t, third)
	eventuallyOptIn(t, name, wanted{Suspend: true})
	annotate(t, second, optInKey, "")
	eventuallyGone(t, made)
	cluster.Delete(t, third)
	eventuallyGone(t, framework.ScheduledRestart(name))
}

// TestOptIn_ThreeKindsAtOnce creates workloads of all three kinds with the same name, and kills the
// manager meanwhile. Each workload must get exactly one ScheduledRestart.
func TestOptIn_ThreeKindsAtOnce(t *testing.T) {
	const name = "s42-three"
	kinds := []string{"Deployment", "StatefulSet", "DaemonSet"}
	manager := cluster.StartManager(t)
	for _, kind := range kinds {
		cluster.Apply(t, optInWorkload(kind, name, optInKey, "true"))
	}
	manager.Kill(t)
	cluster.StartManager(t)
	check := func() error {
		list := &tidekeeperv1.ScheduledRestartList{}
		if err := cluster.List(t.Context(), list, client.InNamespace(metav1.NamespaceDefault)); err != nil {
			return err
		}
		got := map[string]int{}
		for _, o := range list.Items {
			if o.Spec.TargetRef.Name == name {
				got[o.Spec.TargetRef.Kind]++
			}
		}
		return diff(map[string]int{"Deployment": 1, "StatefulSet": 1, "DaemonSet": 1}, got)
	}
	framework.Eventually(t, "each kind has one", check)
	settled(t)
	if err := check(); err != nil {
		t.Errorf("later %v", err)
	}
}

// TestOptIn_NamesThatAPersonHasTaken checks that the opt-in uses a third name if a user's
// ScheduledRestarts for other workloads have the first two names, even if the workload's name has
// the maximum length.
func TestOptIn_NamesThatAPersonHasTaken(t *testing.T) {
	cluster.StartManager(t)
	const name = "s42-person"
	for _, taken := range []string{name, name + "-deployment"} {
		cluster.Apply(t, restartFor("StatefulSet", taken, "another"))
	}
	w := optInWorkload("Deployment", name, optInKey, "true")
	cluster.Apply(t, w)
	var made string
	framework.Eventually(t, "it has one of its own", func() error {
		list := &tidekeeperv1.ScheduledRestartList{}
		if err := cluster.List(t.Context(), list, client.InNamespace(metav1.NamespaceDefault)); err != nil {
			return err
		}
		for i := range list.Items {
			if metav1.IsControlledBy(&list.Items[i], w) {
				made = list.Items[i].Name
				return nil
			}
		}
		return errors.New("not yet")
	})
	if made == name || made == name+"-deployment" {
		t.Errorf("it uses the name %s", made)
	}
	cluster.EventuallyEvent(t, "Deployment", name, fmt.Sprintf("Normal ScheduledRestartCreated: created ScheduledRestart %s, as the name %s is taken: suspended", made, name))

	// long is a workload name of the maximum length.
	long := name + "-"
	for len(long) < 253 {
		long += "x"
	}
	cluster.Apply(t, restartFor("StatefulSet", long, "another"))
	// The workload is built with a shorter name, because optInWorkload also uses the name as a
	// label value, whose maximum length is smaller.
	of := optInWorkload("Deployment", name+"-long", optInKey, "true")
	of.SetName(long)
	cluster.Apply(t, of)
	framework.Eventually(t, "the workload with the long name has one, too", func() error {
		list := &tidekeeperv1.ScheduledRestartList{}
		if err := cluster.List(t.Context(), list, client.InNamespace(metav1.NamespaceDefault)); err != nil {
			return err
		}
		for i := range list.Items {
			if metav1.IsControlledBy(&list.Items[i], of) {
				return nil
			}
		}
		return errors.New("not yet")
	})
}
