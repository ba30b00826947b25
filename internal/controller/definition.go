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

// Definition is everything that the manager needs to know of a controller.
type Definition struct {
	// Name selects the controller in --controllers. Its ClusterRole is called
	// tidekeeper-<name>.
	Name string

	// Purpose says in one sentence what the controller does, for docs/reference.
	Purpose string

	// OffByDefault leaves the controller out of "*".
	OffByDefault bool

	// Namespaced says that the controller is about namespaced objects only, so that
	// --namespaces can limit it to some namespaces. It is built by fairness.Complete.
	Namespaced bool

	// Watches are the kinds that the controller reads. Their informers are started
	// before it, and no other kind can be read through the cache.
	Watches []client.Object

	// Optional are kinds that the controller watches as well, but only while the
	// cluster serves them: their CRDs may be installed and removed at any time.
	Optional []client.Object

	// Borrows are kinds that the controller reads from the cache only where another one
	// watches them. It has no right to watch them itself.
	Borrows []Borrowed

	// Indexes are those on the cache that the controller lists by. An index on a
	// kind that it borrows is there only if another controller watches that kind.
	Indexes []index.Index

	// Rules are the rights that the controller needs.
	Rules []Rule

	// Options are its settings; nil means that it has none.
	Options *options.Group

	// Published are the names of those flags of Options that are published on the lease, for
	// clients that say what the controller will do.
	Published []string

	// RegisterMetrics registers its metrics without anything behind them, for
	// docs/reference; nil means that it has none.
	RegisterMetrics func(prometheus.Registerer) error

	// SetupWithManager adds the controller to a manager. It is called once, after
	// the options have their values.
	SetupWithManager func(ctrl.Manager, clock.Clock) error
}

// Borrowed is a kind that a controller reads only where another one watches it.
type Borrowed struct {
	Object client.Object
	// Reason says what the controller does with it.
	Reason string
}

// Rule is a right of a controller, and why the controller needs it.
type Rule struct {
	Group     string
	Resources []string
	// Names limits the rule to objects of these names.
	Names []string
	Verbs []string
	// Reason says what the controller does with the right, in whole sentences.
	Reason string
}
