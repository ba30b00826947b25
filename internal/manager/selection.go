// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"reflect"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"tidekeeper.dev/tidekeeper/internal/controller"
	"tidekeeper.dev/tidekeeper/internal/index"
	"tidekeeper.dev/tidekeeper/internal/kube/lease"
)

// selection holds the controllers chosen by --controllers, --optional-watches and --namespaces, and
// the watches and indexes of all of them.
type selection struct {
	controllers []controller.Definition
	// watches lists each watched kind once, in the order in which the controllers mention them.
	watches []watchedKind
	// indexes lists the indexes on the kinds in watches.
	indexes []index.Index
}

// watchedKind is a watched kind with the namespaces in which it is watched. namespaces is empty if
// the kind is watched in all namespaces or is not namespaced.
type watchedKind struct {
	object     client.Object
	namespaces []string
	// optional is true if the manager can start although the cluster does not serve the kind.
	optional bool
}

// selection returns the controllers that the options choose, with their watches and indexes.
func (o *Options) selection() (*selection, error) {
	chosen, err := chooseControllers(o.Controllers, o.controllers)
	if err != nil {
		return nil, err
	}
	if chosen, err = chooseWatches(o.OptionalWatches, chosen, o.controllers); err != nil {
		return nil, err
	}
	return newSelection(chosen, o.Namespaces), nil
}

// newSelection returns a selection of the given controllers. A kind is watched only in the given
// namespaces, unless a cluster-wide controller watches it, too.
func newSelection(controllers []controller.Definition, namespaces []string) *selection {
	s := &selection{controllers: controllers}
	at := map[kindOf]int{} // maps each kind to its index in watches
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
		for _, w := range c.OptionalWatches {
			watch(&c, w.Object, false)
		}
		for _, object := range c.Optional {
			watch(&c, object, true)
		}
	}
	type field struct {
		kind kindOf
		name string
	}
	indexed := map[field]bool{}
	for _, c := range controllers {
		for _, i := range c.Indexes {
			// An index starts the informer of its kind. Skip an index on a kind that no chosen
			// controller watches: its controller reads the kind only if another controller watches
			// it. Also skip an index that another controller has already added.
			f := field{kindOfObject(i.Object), i.Field}
			if _, watched := at[f.kind]; watched && !indexed[f] {
				indexed[f] = true
				s.indexes = append(s.indexes, i)
			}
		}
	}
	return s
}

// kindOf identifies a kind by its Go type. For unstructured objects, which all have the same Go
// type, it also holds the GroupVersionKind.
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

// publishedSettings returns the settings to publish on the lease, keyed by name: the running
// controllers, and the flags that these controllers publish.
func publishedSettings(controllers []controller.Definition) map[string]string {
	settings := map[string]string{}
	for _, c := range controllers {
		settings[lease.RunsSetting(c.Name)] = "true"
		for _, name := range c.Published {
			settings[name] = c.Options.Flags.Lookup(name).Value.String()
		}
	}
	return settings
}
