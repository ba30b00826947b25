// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package fuzz

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"tidekeeper.dev/tidekeeper/sandbox/internal/explore"
)

// Difference is something in which a state is not as it should be.
type Difference struct {
	// Object is the key of an object, or of those that have no names of their own.
	Object string
	// Path is a field of it, empty if Text is about the whole object.
	Path      string
	Want, Got string
	Text      string
}

func (d Difference) String() string {
	if d.Path == "" {
		return d.Object + ": " + d.Text
	}
	return fmt.Sprintf("%s: %s is %s, not %s", d.Object, d.Path, explore.Shown(d.Got), explore.Shown(d.Want))
}

func lines(differences []Difference) []string {
	all := make([]string, 0, len(differences))
	for _, d := range differences {
		all = append(all, d.String())
	}
	return all
}

// Mask is what does not count, because it differs without any edit.
type Mask struct {
	// own are given by the user: a resource, or a resource and a path.
	own []string

	mu      sync.Mutex
	paths   map[string]bool
	objects map[string]bool
}

// NewMask makes a mask of resources, like jobs.batch, and fields of a resource, like
// 'deployments.apps metadata.annotations'.
func NewMask(own []string) *Mask {
	return &Mask{own: own, paths: map[string]bool{}, objects: map[string]bool{}}
}

// Learn adds differences.
func (m *Mask) Learn(differences []Difference) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, d := range differences {
		if d.Path == "" {
			m.objects[d.Object] = true
		} else {
			m.paths[pathKey(d.Object, d.Path)] = true
		}
	}
}

func pathKey(object, path string) string {
	return resourceOf(object) + " " + explore.AnyIndex(path)
}

func resourceOf(object string) string {
	resource, _, _ := strings.Cut(object, " ")
	return resource
}

// hidden reports whether an object, or a field of it, does not count.
func (m *Mask) hidden(object, path string) bool {
	if path == "" && m.objects[object] || path != "" && m.paths[pathKey(object, path)] {
		return true
	}
	for _, own := range m.own {
		resource, field, some := strings.Cut(own, " ")
		if resource != resourceOf(object) {
			continue
		}
		rest, is := strings.CutPrefix(explore.AnyIndex(path), explore.AnyIndex(field))
		if !some || path != "" && is && (rest == "" || rest[0] == '.' || rest[0] == '[') {
			return true
		}
	}
	return false
}

// Compare returns in what a state differs from the one that it should be.
func (m *Mask) Compare(want, got explore.State) []Difference {
	m.mu.Lock()
	defer m.mu.Unlock()
	var all []Difference
	keys := maps.Clone(want)
	maps.Copy(keys, got)
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		w, g := want[key], got[key]
		if m.hidden(key, "") {
			continue
		}
		switch {
		case len(g) > len(w) && keptOnPurpose(key):
			// Then it is compared below, if it was there before.
		case len(w) == 0:
			all = append(all, Difference{Object: key, Text: "it is there, and should not be"})
		case len(g) == 0:
			all = append(all, Difference{Object: key, Text: "it is missing"})
		case len(w) != len(g):
			all = append(all, Difference{Object: key, Text: fmt.Sprintf("there are %d, not %d", len(g), len(w))})
		}
		if len(w) == 0 || len(g) == 0 {
			continue
		}
		for _, path := range paths(w, g) {
			wanted, is := explore.Values(w, path), explore.Values(g, path)
			if wanted != is && !ignored(path) && !noted(path, wanted, is) && !m.hidden(key, path) && !grown(key, path, wanted, is) {
				all = append(all, Difference{Object: key, Path: path, Want: wanted, Got: is})
			}
		}
	}
	return all
}

func paths(groups ...[]explore.Fields) []string {
	all := map[string]bool{}
	for _, group := range groups {
		for _, fields := range group {
			for path := range fields {
				all[path] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(all))
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
	return strings.Contains(path, "annotations.") && (want == "" || got == "") && explore.IsTime(want+got)
}

// keptOnPurpose reports whether objects of a kind are kept when no one needs them any more,
// because of the data in them.
func keptOnPurpose(object string) bool {
	resource := resourceOf(object)
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

// changing returns those of some differences that are about fields with another value each
// time, such as counters: again is the state after the same was done once more.
func changing(differences []Difference, again explore.State) []Difference {
	var all []Difference
	for _, d := range differences {
		if d.Path == "" {
			continue
		}
		if now := explore.Values(again[d.Object], d.Path); now != d.Got && now != d.Want {
			all = append(all, d)
		}
	}
	return all
}
