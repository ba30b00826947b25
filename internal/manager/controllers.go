// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/manager/index"
	"tidekeeper.dev/tidekeeper/internal/nodepool"
	"tidekeeper.dev/tidekeeper/internal/optin"
	"tidekeeper.dev/tidekeeper/internal/podcount"
	"tidekeeper.dev/tidekeeper/internal/podstartup"
	"tidekeeper.dev/tidekeeper/internal/restart"
)

// allControllers is the list of the controllers that this binary has.
var allControllers = []controller{
	{
		name: "nodepool",
		watches: []client.Object{
			&tidekeeperv1.NodePool{}, &corev1.Node{}, &corev1.Pod{}, &nodev1.RuntimeClass{},
		},
		indexes: []addIndex{index.AddPodNodeName},
		setup:   setupNodePool,
	},
	{
		name: "scheduled-restart",
		watches: []client.Object{
			&tidekeeperv1.ScheduledRestart{}, &appsv1.Deployment{}, &appsv1.StatefulSet{}, &appsv1.DaemonSet{},
		},
		indexes:      []addIndex{index.AddRestartTarget},
		podIndexes:   []addIndex{index.AddPodRestart(podstartup.RestartedAt)},
		inNamespaces: true,
		setup:        setupRestart,
	},
	{
		name: "restart-opt-in",
		watches: []client.Object{
			&tidekeeperv1.ScheduledRestart{}, &appsv1.Deployment{}, &appsv1.StatefulSet{}, &appsv1.DaemonSet{},
		},
		inNamespaces: true,
		setup:        func(mgr ctrl.Manager, _ Options, _ clock.Clock) error { return optin.SetupWithManager(mgr) },
	},
	{
		name:    "pod-startup",
		watches: []client.Object{&corev1.Pod{}, &corev1.Node{}, &tidekeeperv1.NodePool{}},
		setup:   func(mgr ctrl.Manager, _ Options, _ clock.Clock) error { return podstartup.SetupWithManager(mgr) },
	},
	{
		name: "pod-count",
		// It writes to every ReplicaSet.
		offByDefault: true,
		watches:      []client.Object{&appsv1.ReplicaSet{}, &corev1.Pod{}},
		indexes:      []addIndex{index.AddPodController},
		inNamespaces: true,
		setup:        func(mgr ctrl.Manager, _ Options, _ clock.Clock) error { return podcount.SetupWithManager(mgr) },
	},
}

// controller is one capability of the manager.
type controller struct {
	// name by which --controllers chooses it.
	name string

	// offByDefault leaves it out of "*".
	offByDefault bool

	// watches are the kinds that it reads. Their informers are started before
	// it, and nothing else can be read through the cache.
	watches []client.Object

	// indexes on the cache that it looks things up by.
	indexes []addIndex

	// podIndexes are indexes on pods, of a controller that makes use of pods but
	// can do without: they are there only if another one watches pods.
	podIndexes []addIndex

	// inNamespaces says that it is about namespaced objects only, and can be
	// limited to some namespaces by --namespaces.
	inNamespaces bool

	// setup adds it to the manager.
	setup func(mgr ctrl.Manager, opts Options, c clock.Clock) error
}

type addIndex = func(context.Context, client.FieldIndexer) error

// chooseControllers returns those of the known controllers that the selectors
// choose, in the order in which they are known. A selector is "*" (all that
// are on by default), a name, or a name with a "-" before it (not that one);
// of two about the same controller the first counts, and "*" gives way to
// both. That is kube-controller-manager's syntax. A name that is not known,
// and a choice of nothing, are errors.
func chooseControllers(selectors []string, known []controller) ([]controller, error) {
	names := controllerNames(known)
	star := false
	chosen := map[string]bool{}
	for _, s := range selectors {
		if s == "*" {
			star = true
			continue
		}
		name, not := strings.CutPrefix(s, "-")
		if !slices.Contains(names, name) {
			return nil, fmt.Errorf("--%s=%s: there is no controller %q; there are: %s",
				flagControllers, strings.Join(selectors, ","), name, strings.Join(names, ", "))
		}
		if _, decided := chosen[name]; !decided {
			chosen[name] = !not
		}
	}

	var result []controller
	for _, c := range known {
		on, decided := chosen[c.name]
		if !decided {
			on = star && !c.offByDefault
		}
		if on {
			result = append(result, c)
		}
	}
	if len(result) == 0 {
		return nil, fmt.Errorf("--%s=%s: leaves no controller to run; there are: %s",
			flagControllers, strings.Join(selectors, ","), strings.Join(names, ", "))
	}
	return result, nil
}

// indexesOf returns the indexes that the controllers have together.
func indexesOf(controllers []controller) []addIndex {
	var indexes []addIndex
	pods := slices.ContainsFunc(kindsOf(controllers), func(kind client.Object) bool { _, ok := kind.(*corev1.Pod); return ok })
	for _, c := range controllers {
		indexes = append(indexes, c.indexes...)
		if pods {
			indexes = append(indexes, c.podIndexes...)
		}
	}
	return indexes
}

func controllerNames(controllers []controller) []string {
	names := make([]string, len(controllers))
	for i, c := range controllers {
		names[i] = c.name
	}
	return names
}

// limitedNames returns the names of the controllers that --namespaces limits.
func limitedNames(controllers []controller) []string {
	return controllerNames(slices.DeleteFunc(slices.Clone(controllers), func(c controller) bool { return !c.inNamespaces }))
}

// isLimited tells whether none of the controllers needs a kind outside of the
// namespaces that --namespaces names.
func isLimited(kind client.Object, controllers []controller) bool {
	for _, c := range controllers {
		if !c.inNamespaces && slices.ContainsFunc(c.watches, func(o client.Object) bool { return reflect.TypeOf(o) == reflect.TypeOf(kind) }) {
			return false
		}
	}
	return true
}

// kindsOf returns one object of each kind that the controllers watch, in the
// order in which they first name it.
func kindsOf(controllers []controller) []client.Object {
	var kinds []client.Object
	seen := map[reflect.Type]bool{}
	for _, c := range controllers {
		for _, object := range c.watches {
			if t := reflect.TypeOf(object); !seen[t] {
				seen[t] = true
				kinds = append(kinds, object)
			}
		}
	}
	return kinds
}

func setupNodePool(mgr ctrl.Manager, opts Options, c clock.Clock) error {
	return nodepool.SetupWithManager(mgr, nodepool.Options{
		NodeConcurrency:   opts.NodeConcurrency,
		StatusInterval:    opts.StatusInterval,
		NoExecuteShare:    opts.NoExecuteShare,
		NoExecuteInterval: opts.NoExecuteInterval,
		Clock:             c,
	})
}

func setupRestart(mgr ctrl.Manager, opts Options, c clock.Clock) error {
	return restart.SetupWithManager(mgr, restart.Options{
		Concurrency:    opts.RestartConcurrency,
		MaxConcurrent:  opts.MaxConcurrentRestarts,
		NamespaceShare: opts.RestartNamespaceShare,
		Clock:          c,
	})
}
