// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"tidekeeper.dev/tidekeeper/internal/index"
	"tidekeeper.dev/tidekeeper/internal/options"
)

// Definition declares a controller to the manager.
type Definition struct {
	// Name is the name of the controller in --controllers. Its ClusterRole is called
	// tidekeeper-<name>.
	Name string

	// Purpose describes the controller in a sentence, for docs/reference.
	Purpose string

	// OffByDefault excludes the controller from "*".
	OffByDefault bool

	// Namespaced means that the controller handles namespaced objects only, so that
	// --namespaces can limit it to some namespaces. It must be built with fairness.Complete.
	Namespaced bool

	// Watches are the kinds that the controller reads. Their informers are started before the
	// controller, and no other kind can be read through the cache.
	Watches []client.Object

	// Optional are kinds that the controller watches while the cluster serves them: their CRDs
	// may be installed and removed at any time.
	Optional []client.Object

	// OptionalWatches are kinds that the controller watches only where --optional-watches
	// names them, so that an installation grants the right to read them only if it needs to.
	OptionalWatches []OptionalWatch

	// Borrows are kinds that the controller reads from the cache only if another controller
	// watches them. The controller has no right to watch them itself.
	Borrows []Borrowed

	// Indexes are the indexes on the cache that the controller uses for lists. An index on a
	// borrowed kind exists only if another controller watches that kind.
	Indexes []index.Index

	// Rules are the rights that the controller needs.
	Rules []Rule

	// Options are the settings of the controller; nil if there are none.
	Options *options.Group

	// Published are the names of the flags in Options that are published on the lease, for
	// clients that predict the controller's decisions.
	Published []string

	// RegisterMetrics registers the controller's metrics without values, for docs/reference;
	// nil if there are none.
	RegisterMetrics func(prometheus.Registerer) error

	// SetupWithManager adds the controller to a manager. It is called once, after the options
	// have their values.
	SetupWithManager func(ctrl.Manager, clock.Clock) error
}

// OptionalWatch is a kind that a controller watches only where --optional-watches names it.
type OptionalWatch struct {
	// Name is the name of the watch in --optional-watches.
	Name string
	// Purpose describes the effect of the watch in whole sentences, for docs/reference.
	Purpose string
	// Object is an empty object of the kind.
	Object client.Object
	// Rules are the rights to read the kind. Their ClusterRole is called tidekeeper-<Role()>.
	Rules []Rule
}

// Role returns the name, without the prefix, of the ClusterRole with the rights of the watch.
func (w OptionalWatch) Role() string { return "watch-" + w.Name }

// Borrowed is a kind that a controller reads only if another controller watches it.
type Borrowed struct {
	Object client.Object
	// Reason is the use of the kind by the controller.
	Reason string
}

// Rule is a right of a controller, with the reason for it.
type Rule struct {
	Group     string
	Resources []string
	// Names limits the rule to objects with these names.
	Names []string
	Verbs []string
	// Reason describes the use of the right, in whole sentences.
	Reason string
}
