// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package fuzz

import (
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"tidekeeper.dev/tidekeeper/sandbox/internal/state"
)

// Difference is a deviation of a field or an object from the expected state.
type Difference = state.Difference

func lines(differences []Difference) []string { return state.Lines(differences) }

// Mask hides differences between cluster states that also occur without an edit, and differences in
// objects and fields that the user excludes.
type Mask struct {
	*state.Mask
	// own lists the user's exclusions. Each is a resource, such as jobs.batch, or a resource and
	// the path of a field, separated by a space.
	own []string
}

// NewMask returns a mask that excludes the given resources, such as jobs.batch, and fields, such as
// 'deployments.apps metadata.annotations'.
func NewMask(own []string) *Mask { return &Mask{state.NewMask(), own} }

// isOwn reports whether the user excludes the given object or, if `path` is not empty, the object's
// field at that path.
func (m *Mask) isOwn(object, path string) bool {
	for _, own := range m.own {
		resource, field, some := strings.Cut(own, " ")
		if resource != state.ResourceOf(object) {
			continue
		}
		rest, is := strings.CutPrefix(state.AnyIndex(path), state.AnyIndex(field))
		if !some || path != "" && is && (rest == "" || rest[0] == '.' || rest[0] == '[') {
			return true
		}
	}
	return false
}

// Compare returns the differences between the desired state, `want`, and the actual state, `got`.
// If `by` contains the edited object's content as written by users, Compare ignores fields of this
// object that the operator has only written back in another form.
func (m *Mask) Compare(want, got state.State, by ...written) []Difference {
	judged := func(s state.State) state.State {
		s = maps.Clone(s)
		maps.DeleteFunc(s, func(key string, _ []state.Fields) bool { return m.isOwn(key, "") })
		return s
	}
	return state.Compare(judged(want), judged(got), m.Mask, state.Rules{
		Ignore: func(object, path string) bool { return ignored(path) || m.isOwn(object, path) },
		Same: func(object, path, want, got string) bool {
			return noted(path, want, got) || grown(object, path, want, got) || slices.ContainsFunc(by, func(w written) bool { return w.isBack(object, path, want, got) })
		},
		MayBeMore: keptOnPurpose,
	})
}

// written is the edited object's content as written by users. When an operator updates the object,
// for example to add a finalizer, it writes this content back in another form: without the fields
// that its Go types lack, with zero values for fields without omitempty, and with quantities and
// durations in canonical form.
type written struct {
	object string
	fields state.Fields
	// isNew is set if the edited object was newly created in the actual state. If it is set, the
	// operator has written back the object in the actual state; otherwise, in the desired state.
	isNew bool
}

// isBack reports whether a field of the edited object differs only because the operator has written
// back the object, typically after its creation, in one of the two states (desired or actual). In
// the other state, the field is as written by users.
func (w written) isBack(object, path, want, got string) bool {
	if object != w.object || w.fields == nil || state.Within("metadata", path) || state.Within("status", path) {
		return false
	}
	back, kept := want, got
	if w.isNew {
		back, kept = got, want
	}
	own := w.fields[path]
	switch {
	case kept == own && (own != "" && back == "" || own == "" && isZero(back)):
		return true
	case own == "" && back == "" && isZero(kept): // The operator may have written back the object after a later edit, too.
		return true
	}
	return want == own && sameAmount(got, own) || got == own && sameAmount(want, own)
}

// isZero reports whether a value is the string form of the zero value of a Go type.
func isZero(value string) bool {
	return slices.Contains([]string{"", "0", "false", "{}", "<nil>"}, value)
}

// sameAmount reports whether two strings are equal when parsed as quantities or as durations.
func sameAmount(a, b string) bool {
	if x, err := resource.ParseQuantity(a); err == nil {
		y, err := resource.ParseQuantity(b)
		return err == nil && x.Cmp(y) == 0
	}
	x, err := time.ParseDuration(a)
	y, err2 := time.ParseDuration(b)
	return err == nil && err2 == nil && x == y
}

// ignored reports whether comparisons ignore a field because it counts changes, such as
// status.observedGeneration. Reverting an edit does not revert the count.
func ignored(path string) bool {
	return strings.HasSuffix(path, ".observedGeneration") || strings.HasPrefix(path, "metadata.annotations.deployment.kubernetes.io/") ||
		path == "status.collisionCount"
}

// noted reports whether a field is an added or removed annotation that holds a time, such as the
// time of a restart. Comparisons ignore it, because reverting an edit does not remove it.
func noted(path, want, got string) bool {
	return strings.Contains(path, "annotations.") && (want == "" || got == "") && state.IsTime(want+got)
}

// keptOnPurpose reports whether an object is a PersistentVolumeClaim or a PersistentVolume, which
// outlive the objects that use them, to preserve data.
func keptOnPurpose(object string) bool {
	resource := state.ResourceOf(object)
	return resource == "persistentvolumeclaims" || resource == "persistentvolumes"
}

// grown reports whether a PersistentVolumeClaim has more storage than desired. Comparisons ignore
// this difference, because reverting an edit cannot shrink a PersistentVolumeClaim.
func grown(object, path, want, got string) bool {
	if !keptOnPurpose(object) || !strings.HasSuffix(path, ".storage") {
		return false
	}
	w, err1 := resource.ParseQuantity(want)
	g, err2 := resource.ParseQuantity(got)
	return err1 == nil && err2 == nil && g.Cmp(w) > 0
}

// leftOut reports whether an object only records the history of other objects, such as a ReplicaSet
// without replicas. Comparisons of cluster states leave out such objects.
func leftOut(resource string, o *unstructured.Unstructured) bool {
	switch resource {
	case "controllerrevisions.apps":
		return true
	case "replicasets.apps":
		replicas, _, _ := unstructured.NestedInt64(o.Object, "spec", "replicas")
		owner := metav1.GetControllerOf(o)
		return replicas == 0 && owner != nil && owner.Kind == "Deployment"
	}
	return false
}

// changing returns the differences in fields that change with each repetition of an edit, such as
// counters. `again` is the state after the edit was made and reverted a second time.
func changing(differences []Difference, again state.State) []Difference {
	var all []Difference
	for _, d := range differences {
		if d.Path == "" {
			continue
		}
		if now := state.Values(again[d.Object], d.Path); now != d.Got && now != d.Want {
			all = append(all, d)
		}
	}
	return all
}
