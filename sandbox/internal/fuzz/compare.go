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

// Difference is something in which a state is not as it should be.
type Difference = state.Difference

func lines(differences []Difference) []string { return state.Lines(differences) }

// Mask has the differences that do not count: they are there without any edit, or the user says so.
type Mask struct {
	*state.Mask
	// own are given by the user: a resource, or a resource and a path.
	own []string
}

// NewMask makes a mask of resources, like jobs.batch, and fields of a resource, like
// 'deployments.apps metadata.annotations'.
func NewMask(own []string) *Mask { return &Mask{state.NewMask(), own} }

// isOwn reports whether the user says that an object, or a field of it, does not count.
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

// Compare returns the differences of a state from the wanted state.
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

// written is the content of the edited object as users wrote it. When an operator writes an object
// back, such as with its finalizer, its types drop unknown fields, add fields that they always
// have, and write quantities and durations in their own way.
type written struct {
	object string
	fields state.Fields
	// isNew: the compared object was just made, so that object is written back.
	isNew bool
}

// isBack reports whether a field differs only in that it was written back on one side, and is as users
// wrote it on the other: the object that should be was written back when it was made.
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
	case own == "" && back == "" && isZero(kept): // A later edit may have been written back, too.
		return true
	}
	return want == own && sameAmount(got, own) || got == own && sameAmount(want, own)
}

// isZero reports whether a value is the zero value of a type.
func isZero(value string) bool {
	return slices.Contains([]string{"", "0", "false", "{}", "<nil>"}, value)
}

// sameAmount reports whether two texts are the same quantity or duration.
func sameAmount(a, b string) bool {
	if x, err := resource.ParseQuantity(a); err == nil {
		y, err := resource.ParseQuantity(b)
		return err == nil && x.Cmp(y) == 0
	}
	x, err := time.ParseDuration(a)
	y, err2 := time.ParseDuration(b)
	return err == nil && err2 == nil && x == y
}

// ignored reports whether a field says how often something was changed, which an edit and
// its opposite do not undo.
func ignored(path string) bool {
	return strings.HasSuffix(path, ".observedGeneration") || strings.HasPrefix(path, "metadata.annotations.deployment.kubernetes.io/") ||
		path == "status.collisionCount"
}

// noted reports whether an annotation is about when something was done, which an edit and its
// opposite do not undo, as when pods were restarted.
func noted(path, want, got string) bool {
	return strings.Contains(path, "annotations.") && (want == "" || got == "") && state.IsTime(want+got)
}

// keptOnPurpose reports whether objects of a kind are kept when no other object needs them any more,
// because of the data in them.
func keptOnPurpose(object string) bool {
	resource := state.ResourceOf(object)
	return resource == "persistentvolumeclaims" || resource == "persistentvolumes"
}

// grown reports whether a claim for storage is larger than it should be: none can shrink.
func grown(object, path, want, got string) bool {
	if !keptOnPurpose(object) || !strings.HasSuffix(path, ".storage") {
		return false
	}
	w, err1 := resource.ParseQuantity(want)
	g, err2 := resource.ParseQuantity(got)
	return err1 == nil && err2 == nil && g.Cmp(w) > 0
}

// leftOut reports whether an object is part of the history of others, and not of a state.
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

// changing returns the differences in fields with another value each
// time, such as counters: again is the state after the same was done once more.
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
