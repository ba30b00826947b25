// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package matrix

import (
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/podcount"
	"tidekeeper.dev/tidekeeper/test/fault/matrix/witness"
	"tidekeeper.dev/tidekeeper/test/framework"
)

// scenarioRun is one run of a scenario, whose objects are all named after it.
type scenarioRun struct {
	testing.TB
	*testbed
	name string
	// tick and secondTick are the ticks of the requested restarts.
	tick, secondTick time.Time
	// own are other texts that only this run has.
	own []string
	// begun and begunSecond are the ends of the proxies' logs when users began to act.
	begun, begunSecond int64
	// other is the second of two managers.
	other *framework.Manager
	// fault is the fault at the manager's start.
	fault *fault
	// over is closed at the end of the run.
	over chan struct{}

	mu sync.Mutex
	// meddled are the objects that another client has written to at a bad moment, by
	// UID.
	meddled map[types.UID]bool
}

// node returns the name of one of its nodes.
func (w *scenarioRun) node(i int) string { return fmt.Sprintf("%s-%d", w.name, i) }

// kinds are the kinds of objects that the run may have.
func (w *scenarioRun) kinds() []schema.GroupVersionKind {
	if w.argo {
		return append(slices.Clone(ownKinds), witness.Rollout)
	}
	return ownKinds
}

// ownKinds are those that every cluster serves.
var ownKinds = []schema.GroupVersionKind{
	corev1.SchemeGroupVersion.WithKind("Node"),
	nodev1.SchemeGroupVersion.WithKind("RuntimeClass"),
	appsv1.SchemeGroupVersion.WithKind("Deployment"),
	appsv1.SchemeGroupVersion.WithKind("ReplicaSet"),
	appsv1.SchemeGroupVersion.WithKind("StatefulSet"),
	appsv1.SchemeGroupVersion.WithKind("DaemonSet"),
	tidekeeperv1.SchemeGroupVersion.WithKind("NodePool"),
	tidekeeperv1.SchemeGroupVersion.WithKind("ScheduledRestart"),
}

// meanwhile is the annotation that another client writes at a bad moment. On nodes it
// also writes a taint, as taints are a list that is written as a whole.
const meanwhile = "example.com/meanwhile"

// objects returns all objects of the run.
func (w *scenarioRun) objects() ([]unstructured.Unstructured, error) {
	var all []unstructured.Unstructured
	for _, kind := range w.kinds() {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(kind)
		if err := w.List(w.Context(), list); err != nil {
			return nil, err
		}
		for _, o := range list.Items {
			if strings.Contains(o.GetName(), w.name) {
				all = append(all, o)
			}
		}
	}
	return all, nil
}

// meddle writes to all objects as another client.
func (w *scenarioRun) meddle() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.meddled = map[types.UID]bool{}
	objects, err := w.objects()
	if err != nil {
		w.Error(err)
		return
	}
	for _, o := range objects {
		if o.GetKind() == "ReplicaSet" {
			continue // Its Deployment would copy it.
		}
		err := retry.OnError(retry.DefaultRetry, func(err error) bool { return client.IgnoreNotFound(err) != nil }, func() error {
			if err := w.Get(w.Context(), client.ObjectKeyFromObject(&o), &o); err != nil {
				return err
			}
			before := o.DeepCopy()
			o.SetAnnotations(add(o.GetAnnotations(), meanwhile, "true"))
			if o.GetKind() == "Node" {
				taints, _, _ := unstructured.NestedSlice(o.Object, "spec", "taints")
				taints = append(taints, map[string]any{"key": meanwhile, "effect": "PreferNoSchedule"})
				if err := unstructured.SetNestedSlice(o.Object, taints, "spec", "taints"); err != nil {
					return err
				}
			}
			return w.Patch(w.Context(), &o, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
		})
		if err == nil {
			w.meddled[o.GetUID()] = true
		} else if client.IgnoreNotFound(err) != nil {
			w.Errorf("the other client's write: %v", err)
		}
	}
}

// state returns all objects as text, without what differs between two equal runs:
// names, times and resourceVersions. Nothing that another client has written may be
// lost.
func (w *scenarioRun) state() (string, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	objects, err := w.objects()
	if err != nil {
		return "", err
	}
	var lines []string
	for _, o := range objects {
		annotations := o.GetAnnotations()
		if w.meddled[o.GetUID()] && o.GetKind() == "Deployment" {
			// Its generation counts changes of annotations, too.
			o.SetGeneration(o.GetGeneration() - 1)
		}
		if lost := without(&o, annotations); lost && w.meddled[o.GetUID()] {
			return "", fmt.Errorf("%s %s has lost what another client wrote", o.GetKind(), o.GetName())
		}
		if o.SetAnnotations(annotations); len(annotations) == 0 {
			o.SetAnnotations(nil)
		}
		if !w.secondTick.IsZero() {
			withoutOvertaken(&o)
		}
		text, err := yaml.Marshal(clean(o))
		if err != nil {
			return "", err
		}
		lines = append(lines, w.anonymous(string(text)))
	}
	slices.Sort(lines)
	return strings.Join(lines, "---\n"), nil
}

// without removes what another client wrote, and reports whether any of it was missing.
func without(o *unstructured.Unstructured, annotations map[string]string) (lost bool) {
	lost = annotations[meanwhile] == ""
	delete(annotations, meanwhile)
	if o.GetKind() != "Node" {
		return lost
	}
	taints, _, _ := unstructured.NestedSlice(o.Object, "spec", "taints")
	left := slices.DeleteFunc(slices.Clone(taints), func(taint any) bool { return taint.(map[string]any)["key"] == meanwhile })
	if len(left) < len(taints) {
		_ = unstructured.SetNestedSlice(o.Object, left, "spec", "taints")
		return lost
	}
	return true
}

// withoutOvertaken removes that a restart was followed by the one of another schedule before
// its success was recorded: that happens if the manager dies between the two.
func withoutOvertaken(o *unstructured.Unstructured) {
	history, _, _ := unstructured.NestedSlice(o.Object, "status", "history")
	for _, record := range history {
		record := record.(map[string]any)
		if message, _ := record["message"].(string); strings.HasPrefix(message, "restarted again at ") {
			delete(record, "message")
		}
	}
	if len(history) > 0 {
		_ = unstructured.SetNestedSlice(o.Object, history, "status", "history")
	}
}

func add(annotations map[string]string, key, value string) map[string]string {
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[key] = value
	return annotations
}

var (
	timestamps = regexp.MustCompile(`\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?Z?`)
	hashes     = regexp.MustCompile(`\bc1-[0-9a-f]{32}\b`)
	durations  = regexp.MustCompile(`\b\d+(\.\d+)?(ms|s|m)\b`)
)

func (w *scenarioRun) anonymous(text string) string {
	text = strings.ReplaceAll(text, w.name, "NAME")
	for _, own := range w.own {
		text = strings.ReplaceAll(text, own, "OWN")
	}
	for _, tick := range []time.Time{w.tick, w.secondTick} {
		if !tick.IsZero() {
			text = strings.ReplaceAll(text, tick.Format(time.RFC3339), "TICK")
		}
	}
	text = hashes.ReplaceAllString(text, "HASH")
	return durations.ReplaceAllString(timestamps.ReplaceAllString(text, "TIME"), "DURATION")
}

// clean returns the part of an object that must be the same at the end of each run.
func clean(o unstructured.Unstructured) map[string]any {
	all := o.Object
	metadata := map[string]any{"name": o.GetName(), "deleting": o.GetDeletionTimestamp() != nil}
	for _, field := range []string{"labels", "annotations", "finalizers", "generation"} {
		if value, ok := all["metadata"].(map[string]any)[field]; ok {
			metadata[field] = value
		}
	}
	var owners []any
	for _, owner := range o.GetOwnerReferences() {
		owners = append(owners, map[string]any{"kind": owner.Kind, "name": owner.Name, "controller": owner.Controller, "block": owner.BlockOwnerDeletion})
	}
	metadata["owners"] = owners
	cleaned := map[string]any{"kind": o.GetKind(), "metadata": metadata}
	switch o.GetKind() {
	case "Node":
		taints, _, _ := unstructured.NestedSlice(all, "spec", "taints")
		for _, taint := range taints {
			delete(taint.(map[string]any), "timeAdded")
		}
		cleaned["taints"] = taints
	case "ReplicaSet":
		// Its name depends on the template, and so on the tick. The number of ReplicaSets
		// shows how often the template was changed.
		delete(metadata, "name")
		delete(metadata, "labels")
		cleaned["pods"] = o.GetLabels()[podcount.Label]
		cleaned["replicas"], _, _ = unstructured.NestedInt64(all, "spec", "replicas")
		cleaned["ready"], _, _ = unstructured.NestedInt64(all, "status", "readyReplicas")
	case "Rollout":
		cleaned["spec"] = all["spec"]
		for _, field := range []string{"replicas", "updatedReplicas", "availableReplicas", "phase", "restartedAt"} {
			cleaned[field], _, _ = unstructured.NestedFieldNoCopy(all, "status", field)
		}
	case "Deployment", "StatefulSet", "DaemonSet":
		cleaned["spec"] = all["spec"]
		for _, count := range []string{"replicas", "updatedReplicas", "availableReplicas", "updatedNumberScheduled", "numberAvailable"} {
			cleaned[count], _, _ = unstructured.NestedInt64(all, "status", count)
		}
	default:
		for _, field := range []string{"spec", "status", "handler", "scheduling"} {
			if value, ok := all[field]; ok {
				cleaned[field] = value
			}
		}
	}
	drop(cleaned, "lastTransitionTime", "uid", "podStartup", "startedTime", "completedTime", "lastSuccessfulTime")
	return cleaned
}

// drop removes fields at any depth.
func drop(value any, fields ...string) {
	switch value := value.(type) {
	case map[string]any:
		for key, inner := range value {
			if slices.Contains(fields, key) {
				delete(value, key)
			} else {
				drop(inner, fields...)
			}
		}
	case []any:
		for _, inner := range value {
			drop(inner, fields...)
		}
	}
}

// eventually waits until the check returns nil.
func (w *scenarioRun) eventually(what string, check func() error) {
	w.Helper()
	framework.EventuallyWithin(w, w.patience, what, check)
}

// Refresh reads an object again, even if the API server is down for a moment.
func (w *scenarioRun) Refresh(t testing.TB, o client.Object) {
	t.Helper()
	key := client.ObjectKeyFromObject(o)
	framework.EventuallyWithin(t, w.patience, "get "+key.Name, func() error {
		// Values that were read or changed before must not remain.
		reflect.ValueOf(o).Elem().SetZero()
		o.SetNamespace(key.Namespace)
		o.SetName(key.Name)
		return w.Get(t.Context(), key, o)
	})
}

// Change changes an object with one merge patch, even if the API server is down for a
// moment.
func (w *scenarioRun) Change(t testing.TB, o client.Object, change func()) {
	t.Helper()
	framework.EventuallyWithin(t, w.patience, "patch "+o.GetName(), func() error {
		w.Refresh(t, o)
		before := o.DeepCopyObject().(client.Object)
		change()
		return w.Patch(t.Context(), o, client.MergeFrom(before))
	})
}
