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

// Definition declares a controller with its watches, indexes, rights and options.
type Definition struct {
	// Name is the controller's name in --controllers. Its ClusterRole is named tidekeeper-<name>.
	Name string

	// Purpose describes the controller in one sentence, for docs/reference.
	Purpose string

	// OffByDefault excludes the controller from the selector "*" of --controllers.
	OffByDefault bool

	// Namespaced is true if the controller handles only namespaced objects. --namespaces can then
	// limit it to some namespaces. A namespaced controller must be built with fairness.Complete.
	Namespaced bool

	// Watches lists the kinds that the controller reads, as empty objects. Their informers are
	// started before the controller. Apart from the kinds in Optional, OptionalWatches and Borrows,
	// the controller can read no other kind through the cache.
	Watches []client.Object

	// Optional lists the kinds that the controller watches while the cluster serves them. Their
	// CRDs may be installed and removed at any time.
	Optional []client.Object

	// OptionalWatches lists the kinds that the controller watches only if --optional-watches names
	// them. The rights to read these kinds need to be granted only if the watch is turned on.
	OptionalWatches []OptionalWatch

	// Borrows lists the kinds that the controller reads from the cache only if another controller
	// watches them. The controller itself has no right to watch them.
	Borrows []Borrowed

	// Indexes lists the cache indexes by which the controller lists objects. An index on a borrowed
	// kind exists only if another controller watches that kind.
	Indexes []index.Index

	// Rules lists the API rights that the controller needs.
	Rules []Rule

	// Options holds the controller's settings. It is nil if there are none.
	Options *options.Group

	// Published lists the flags in Options whose values are published on the leader election lease.
	// Clients that predict the controller's decisions read them there.
	Published []string

	// RegisterMetrics registers the controller's metrics without values, to generate
	// docs/reference. It is nil if the controller has no metrics.
	RegisterMetrics func(prometheus.Registerer) error

	// SetupWithManager adds the controller to a manager. It is called once, after the flags have
	// been parsed.
	SetupWithManager func(ctrl.Manager, clock.Clock) error
}

// OptionalWatch is a kind that a controller watches only if --optional-watches names it.
type OptionalWatch struct {
	// Name is the watch's name in --optional-watches.
	Name string
	// Purpose describes the effect of the watch, in full sentences, for docs/reference.
	Purpose string
	// Object is an empty object of the watched kind.
	Object client.Object
	// Rules lists the rights to read the kind. They are granted by the ClusterRole
	// tidekeeper-<Role()>.
	Rules []Rule
}

// Role returns the name of the ClusterRole that grants the watch's rights, without the prefix
// tidekeeper-.
func (w OptionalWatch) Role() string { return "watch-" + w.Name }

// Borrowed is a kind that a controller reads only if another controller watches it.
type Borrowed struct {
	Object client.Object
	// Reason describes for which purpose the controller reads the kind.
	Reason string
}

// Rule is an API right of a controller, with the reason for which the controller needs it.
type Rule struct {
	Group     string
	Resources []string
	// Names limits the rule to the objects with these names. If it is empty, the rule covers all
	// objects.
	Names []string
	Verbs []string
	// Reason describes, in full sentences, how the controller uses the right.
	Reason string
}
