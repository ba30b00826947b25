// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package witness

import (
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
)

// runtimeClassKept: a RuntimeClass is deleted only if its pool is deleted or gets
// another handler.
func runtimeClassKept(h History) (broken []string) {
	there := pools{}
	for i := range h {
		e := &h[i]
		there.see(e)
		class, ok := e.Object.(*nodev1.RuntimeClass)
		if !ok || e.Type != watch.Deleted || e.ByUser {
			continue
		}
		for _, owner := range class.OwnerReferences {
			pool := there[owner.Name]
			if pool != nil && pool.UID == owner.UID && pool.DeletionTimestamp.IsZero() && pool.Spec.Handler == class.Handler {
				broken = append(broken, fmt.Sprintf("%s: pool %s asks for it, with handler %s", e, pool.Name, class.Handler))
			}
		}
	}
	return broken
}

// workload is what the checks need from a Deployment, StatefulSet, DaemonSet or Rollout.
type workload struct {
	kind string
	// restartedAt is the annotation of its pod template, or the field of a Rollout.
	restartedAt string
	// complete: no rollout is in progress, and all pods are available.
	complete bool
}

func workloadOf(o client.Object) (workload, bool) {
	template := func(t *corev1.PodTemplateSpec) string { return t.Annotations[tidekeeperv1.RestartedAtAnnotation] }
	switch o := o.(type) {
	case *appsv1.Deployment:
		s, replicas := &o.Status, replicasOf(o.Spec.Replicas)
		return workload{"Deployment", template(&o.Spec.Template), s.ObservedGeneration == o.Generation &&
			s.Replicas == replicas && s.UpdatedReplicas == replicas && s.AvailableReplicas == replicas}, true
	case *appsv1.StatefulSet:
		s, replicas := &o.Status, replicasOf(o.Spec.Replicas)
		return workload{"StatefulSet", template(&o.Spec.Template), s.ObservedGeneration == o.Generation &&
			s.CurrentRevision == s.UpdateRevision && s.Replicas == replicas && s.AvailableReplicas == replicas}, true
	case *appsv1.DaemonSet:
		s := &o.Status
		return workload{"DaemonSet", template(&o.Spec.Template), s.ObservedGeneration == o.Generation &&
			s.UpdatedNumberScheduled == s.DesiredNumberScheduled && s.NumberAvailable == s.DesiredNumberScheduled}, true
	}
	if u, ok := o.(*unstructured.Unstructured); ok && u.GroupVersionKind() == Rollout {
		return rolloutOf(u), true
	}
	return workload{}, false
}

// Rollout is the kind of Argo's Rollouts.
var Rollout = schema.GroupVersionKind{Group: "argoproj.io", Version: "v1alpha1", Kind: "Rollout"}

// rolloutOf returns the same of a Rollout, whose spec says when it was restarted last.
func rolloutOf(u *unstructured.Unstructured) workload {
	text := func(path ...string) string { value, _, _ := unstructured.NestedString(u.Object, path...); return value }
	return workload{Rollout.Kind, text("spec", "restartAt"), text("status", "phase") == "Healthy" &&
		text("status", "observedGeneration") == fmt.Sprint(u.GetGeneration())}
}

func replicasOf(replicas *int32) int32 {
	if replicas == nil {
		return 1
	}
	return *replicas
}

// restarts calls a function for each change of a template's restartedAt that was not
// made by a user.
func (h History) restarts(see func(*Event), restart func(e *Event, before, after workload)) {
	for i := range h {
		e := &h[i]
		if see != nil {
			see(e)
		}
		after, ok := workloadOf(e.Object)
		if !ok || e.ByUser || e.Type == watch.Deleted || e.Before == nil {
			continue
		}
		if before, _ := workloadOf(e.Before); before.restartedAt != after.restartedAt {
			restart(e, before, after)
		}
	}
}

// OwnTick on a ScheduledRestart is when the pods have to be restarted for a reason of their own:
// for their age, as the limit and the windows say, or for what they are configured with.
const OwnTick = "example.com/own-tick"

// tickOnce: each value of restartedAt is a requested tick, and no workload gets the same
// one twice.
func tickOnce(h History) (broken []string) {
	type target struct{ namespace, kind, name string }
	ticks := map[target]map[int64]bool{}
	see := func(e *Event) {
		r, ok := e.Object.(*tidekeeperv1.ScheduledRestart)
		if !ok {
			return
		}
		for _, asked := range []string{tidekeeperv1.RestartNowAnnotation, OwnTick} {
			tick, err := time.Parse(time.RFC3339, r.Annotations[asked])
			if err != nil {
				continue
			}
			t := target{r.Namespace, r.Spec.TargetRef.Kind, r.Spec.TargetRef.Name}
			if ticks[t] == nil {
				ticks[t] = map[int64]bool{}
			}
			ticks[t][tick.Unix()] = true
		}
	}
	type given struct {
		uid  types.UID
		tick int64
	}
	served := map[given]bool{}
	h.restarts(see, func(e *Event, before, after workload) {
		tick, err := time.Parse(time.RFC3339, after.restartedAt)
		asked := ticks[target{e.Object.GetNamespace(), after.kind, e.Object.GetName()}]
		switch g := (given{e.Object.GetUID(), tick.Unix()}); {
		case err != nil || !asked[tick.Unix()]:
			broken = append(broken, fmt.Sprintf("%s: restarted for %q, which is not a tick; it was %q", e, after.restartedAt, before.restartedAt))
		case served[g]:
			broken = append(broken, fmt.Sprintf("%s: restarted for %s a second time; it was %q", e, after.restartedAt, before.restartedAt))
		default:
			served[g] = true
		}
	})
	return broken
}

// oneAtATime: a template is written only when the previous rollout is complete.
func oneAtATime(h History) (broken []string) {
	h.restarts(nil, func(e *Event, before, after workload) {
		if !before.complete {
			broken = append(broken, fmt.Sprintf("%s: restarted for %s while a rollout was under way", e, after.restartedAt))
		}
	})
	return broken
}

// recordedOnce: the history of a ScheduledRestart has one record for a tick that was
// started, and a record stays until newer ones displace it.
func recordedOnce(h History) (broken []string) {
	for i := range h {
		e := &h[i]
		r, ok := e.Object.(*tidekeeperv1.ScheduledRestart)
		if !ok || e.Type == watch.Deleted {
			continue
		}
		ticks := map[int64]bool{}
		for _, record := range r.Status.History {
			if record.StartedTime == nil {
				continue
			}
			if ticks[record.ScheduledTime.Unix()] {
				broken = append(broken, fmt.Sprintf("%s: tick %s was started twice", e, record.ScheduledTime.UTC().Format(time.RFC3339)))
			}
			ticks[record.ScheduledTime.Unix()] = true
		}
		if before, ok := e.Before.(*tidekeeperv1.ScheduledRestart); ok && !e.ByUser && len(r.Status.History) < len(before.Status.History) {
			broken = append(broken, fmt.Sprintf("%s: its history had %d records and has %d", e, len(before.Status.History), len(r.Status.History)))
		}
	}
	return broken
}

// mostReports is how often the same event may be recorded: if a manager dies between
// the event and the status write, the next one records the event again.
const mostReports = 2

// reportedOnce: the outcome of a tick is reported once by one process, and not again by
// all later ones. What happens to a node can happen again.
func reportedOnce(h History) (broken []string) {
	type note struct {
		about              types.UID
		kind, reason, text string
	}
	reports := map[note]map[types.UID]bool{}
	for i := range h {
		event, ok := h[i].Object.(*corev1.Event)
		if !ok || event.InvolvedObject.Kind != "ScheduledRestart" || event.ReportingController != "tidekeeper" || h[i].Type == watch.Deleted {
			continue
		}
		n := note{event.InvolvedObject.UID, event.InvolvedObject.Kind, event.Reason, event.Message}
		if reports[n] == nil {
			reports[n] = map[types.UID]bool{}
		}
		reports[n][event.UID] = true
		// If the same process reports it again, the event object counts that.
		if times := len(reports[n]); times > mostReports || event.Series != nil {
			broken = append(broken, fmt.Sprintf("%s of %s %s was reported again, %d times or more: %s", event.Reason, event.InvolvedObject.Kind, event.InvolvedObject.Name, max(2, times), event.Message))
		}
	}
	return broken
}
