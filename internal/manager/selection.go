// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"tidekeeper.dev/tidekeeper/internal/controller"
	"tidekeeper.dev/tidekeeper/internal/index"
)

// selection is what --controllers and --namespaces choose: the controllers to run, and
// what these need together.
type selection struct {
	controllers []controller.Definition
	// watches has each kind that the controllers watch once, in the order in which
	// they first name it.
	watches []watchedKind
	// indexes are those on the kinds in watches.
	indexes []index.Index
}

// watchedKind is a kind that is watched, and in which namespaces: none means in all, or
// that the kind is not namespaced.
type watchedKind struct {
	object     client.Object
	namespaces []string
	// optional says that the cluster need not serve the kind.
	optional bool
}

// selection returns what the options choose.
func (o *Options) selection() (*selection, error) {
	chosen, err := chooseControllers(o.Controllers, o.controllers)
	if err != nil {
		return nil, err
	}
	return newSelection(chosen, o.Namespaces), nil
}

// newSelection returns what the controllers need. A kind is watched in the given
// namespaces only if no controller needs it in others.
func newSelection(controllers []controller.Definition, namespaces []string) *selection {
	s := &selection{controllers: controllers}
	at := map[kindOf]int{} // the place in watches of each kind
	watch := func(c *controller.Definition, object client.Object, optional bool) {
		kind := kindOfObject(object)
		i, seen := at[kind]
		if !seen {
			i = len(s.watches)
			at[kind] = i
			s.watches = append(s.watches, watchedKind{object: object, namespaces: namespaces, optional: optional})
		}
		if !c.Namespaced {
			s.watches[i].namespaces = nil
		}
	}
	for _, c := range controllers {
		for _, object := range c.Watches {
			watch(&c, object, false)
		}
		for _, object := range c.Optional {
			watch(&c, object, true)
		}
	}
	for _, c := range controllers {
		// An index starts the informer of its kind, so a kind that is borrowed gets one
		// only where another controller watches it.
		s.indexes = append(s.indexes, slices.DeleteFunc(slices.Clone(c.Indexes), func(i index.Index) bool {
			_, watched := at[kindOfObject(i.Object)]
			return !watched
		})...)
	}
	return s
}

// kindOf identifies a kind: by its Go type, or for unstructured objects by its name.
type kindOf struct {
	reflect.Type
	schema.GroupVersionKind
}

func kindOfObject(object client.Object) kindOf {
	kind := kindOf{Type: reflect.TypeOf(object)}
	if u, ok := object.(*unstructured.Unstructured); ok {
		kind.GroupVersionKind = u.GroupVersionKind()
	}
	return kind
}

// publishedSettings returns the settings that controllers publish, by the names of their flags.
func publishedSettings(controllers []controller.Definition) map[string]string {
	settings := map[string]string{}
	for _, c := range controllers {
		for _, name := range c.Published {
			settings[name] = c.Options.Flags.Lookup(name).Value.String()
		}
	}
	return settings
}
