// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package restarts

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/cli/cmdutil"
	"tidekeeper.dev/tidekeeper/internal/cli/freezes"
	"tidekeeper.dev/tidekeeper/internal/freeze/period"
	"tidekeeper.dev/tidekeeper/internal/kube/pages"
	"tidekeeper.dev/tidekeeper/internal/restart/decision"
	"tidekeeper.dev/tidekeeper/internal/restart/forecast"
	"tidekeeper.dev/tidekeeper/internal/view"
	"tidekeeper.dev/tidekeeper/internal/workload"
)

// world is the cluster state from which the commands list, next, forecast and explain predict
// restarts.
type world struct {
	*cmdutil.Env
	client client.Client
	// namespace limits the restarts that the command displays; "" means all namespaces.
	namespace string

	restarts []*tidekeeperv1.ScheduledRestart
	targets  map[forecast.TargetKey]forecast.Target
	freezes  map[string][]period.Period
	// alone is set if the workloads of other namespaces are not needed. The list of restarts sets
	// it, because the list does not show the restart budget, which all namespaces share.
	alone bool
	// partial is set if the field restarts lacks the ScheduledRestarts in other namespaces, because
	// the user is not allowed to list them.
	partial bool
	// manager is the state of Tidekeeper's manager. unobserved counts the ScheduledRestarts with a
	// change, a restart request or a due tick (scheduled time) that no manager has observed.
	manager    view.Manager
	unobserved view.Unobserved
}

// assumedDuration is the duration to assume for a restart whose history contains no successful
// restart.
const assumedDuration = time.Minute

func newWorld(e *cmdutil.Env, c client.Client, namespace string) *world {
	return &world{Env: e, client: c, namespace: namespace, targets: map[forecast.TargetKey]forecast.Target{}}
}

// readWorld reads the ScheduledRestarts and the state that determines when they start.
func readWorld(ctx context.Context, e *cmdutil.Env, c client.Client, namespace string) (*world, error) {
	r := newWorld(e, c, namespace)
	if err := r.readRestarts(ctx); err != nil {
		return nil, err
	}
	return r, r.readRest(ctx)
}

// readRest reads the Freezes, the state of the manager and the target workloads for the
// ScheduledRestarts in r.
func (r *world) readRest(ctx context.Context) (err error) {
	if err := r.readFreezes(ctx); err != nil {
		return err
	}
	if r.manager, err = cmdutil.ManagerIfAllowed(ctx, r.Env, r.client); err != nil {
		return err
	}
	return r.readWorkloads(ctx)
}

// readWorkloads reads the target workloads of all ScheduledRestarts, and the pods of the workloads
// whose pod age is limited.
func (r *world) readWorkloads(ctx context.Context) error {
	if err := r.readTargetsOfAll(ctx); err != nil {
		return err
	}
	return r.readPods(ctx)
}

// readTargetsOfAll reads the target workloads of all ScheduledRestarts, without their pods.
func (r *world) readTargetsOfAll(ctx context.Context) error {
	wanted := map[*workload.Kind]map[forecast.TargetKey]bool{}
	for _, restart := range r.restarts {
		for _, ref := range []tidekeeperv1.TargetRef{restart.Spec.TargetRef, decision.TargetRef(restart.Status.Active, &restart.Spec)} {
			kind, err := workload.Get(ref)
			if err != nil && decision.Evicts(restart) {
				// Assume that the workload is healthy, because this version cannot determine the
				// state of workloads of this kind.
				continue
			}
			if err != nil {
				return err
			}
			if wanted[kind] == nil {
				wanted[kind] = map[forecast.TargetKey]bool{}
			}
			wanted[kind][forecast.KeyOf(restart.Namespace, ref)] = true
		}
	}
	for _, kind := range workload.Kinds {
		if len(wanted[kind]) == 0 {
			continue
		}
		if err := r.readTargets(ctx, kind, wanted[kind]); err != nil {
			return err
		}
	}
	return nil
}

// readPods reads the creation times of pods in the namespaces with a ScheduledRestart that limits
// the age of pods.
func (r *world) readPods(ctx context.Context) error {
	limited := map[string]bool{}
	for _, restart := range r.restarts {
		if restart.Spec.MaxPodAgeSeconds > 0 {
			limited[restart.Namespace] = true
		}
	}
	ages, err := readPodAges(ctx, r.client, slices.Sorted(maps.Keys(limited)))
	if err != nil {
		return err
	}
	if len(ages.unread) > 0 {
		r.Console.Note("note: you may not list the pods of " + strings.Join(ages.unread, ", ") + ": their ages are those that the manager last recorded")
	}
	for key, oldest := range ages.oldest {
		if t, known := r.targets[key]; known {
			t.Oldest = oldest
			r.targets[key] = t
		}
	}
	return nil
}

// inNamespaces calls read for all namespaces (""). If the user is not allowed to list all
// namespaces and `one` is not "", it then calls read for the namespace `one`, and returns `one`.
// Otherwise, it returns "".
func inNamespaces(one string, read func(namespace string) error) (namespace string, err error) {
	err = read("")
	if apierrors.IsForbidden(err) && one != "" {
		return one, read(one)
	}
	return "", err
}

// readRestarts reads the ScheduledRestarts of all namespaces, or of r.namespace if the user is not
// allowed to list all. It drops the fields that a forecast does not need.
func (r *world) readRestarts(ctx context.Context) error {
	namespace, err := inNamespaces(r.namespace, func(namespace string) error {
		r.restarts, r.unobserved = nil, view.Unobserved{}
		_, err := cmdutil.EachRestart(ctx, r.client, func(restart *tidekeeperv1.ScheduledRestart) {
			if r.namespace == "" || restart.Namespace == r.namespace {
				r.unobserved.AddRestart(restart, r.Now())
			}
			forget(restart)
			r.restarts = append(r.restarts, restart)
		}, client.InNamespace(namespace))
		return err
	})
	if namespace != "" {
		r.partial = true
		r.Console.Note("note: you may not list the ScheduledRestarts of all namespaces: restarts elsewhere are not counted")
	}
	return cmdutil.AboutKind(err, restartKind.Name, namespace, "")
}

// forget drops the messages in the status of a ScheduledRestart, which take memory and do not
// affect a forecast.
func forget(r *tidekeeperv1.ScheduledRestart) {
	for i := range r.Status.History {
		r.Status.History[i].Message = ""
	}
	for i := range r.Status.Conditions {
		r.Status.Conditions[i].Message = ""
	}
}

// readFreezes reads the Freezes that apply to the namespaces of the ScheduledRestarts in r. If the
// user is not allowed to read some Freezes, it omits them and prints a note.
func (r *world) readFreezes(ctx context.Context) error {
	namespaces := sets.New[string]()
	for _, restart := range r.restarts {
		namespaces.Insert(restart.Namespace)
	}
	var err error
	var unknown string
	if r.freezes, unknown, err = freezes.Read(ctx, r.client, sets.List(namespaces), r.Now()); unknown != "" {
		r.Console.Note("note: " + unknown)
	}
	return err
}

// readTargets reads the target workloads of a kind. wanted is the set of target workloads of this
// kind. Workloads that the user is not allowed to read are assumed to be healthy.
func (r *world) readTargets(ctx context.Context, kind *workload.Kind, wanted map[forecast.TargetKey]bool) error {
	var stateErr error
	take := func(object runtime.Object) error {
		o, ok := object.(workload.Object)
		if !ok {
			return fmt.Errorf("%T is not a workload", object)
		}
		key := forecast.KeyOf(o.GetNamespace(), kind.Ref(o.GetName()))
		if !wanted[key] {
			return nil
		}
		state, err := kind.State(o)
		if err != nil {
			return err
		}
		state.Selector = nil // A selector takes much memory, and the forecast does not need it.
		at, limit := workload.LastProgress(o)
		r.targets[key] = forecast.Target{State: state, LastProgress: at, ProgressLimit: limit}
		return nil
	}
	read := func(namespace string) error {
		return pages.Each(ctx, r.client, func() client.ObjectList { return cmdutil.NewList(kind) }, func(page client.ObjectList) {
			if err := meta.EachListItem(page, take); err != nil {
				stateErr = err
			}
		}, client.InNamespace(namespace))
	}
	var namespace string
	var err error
	if r.alone {
		namespace, err = r.namespace, read(r.namespace)
	} else {
		namespace, err = inNamespaces(r.namespace, read)
	}
	switch {
	case apierrors.IsForbidden(err):
		r.Console.Note(fmt.Sprintf("note: you may not list %s: all are assumed to be healthy", kind.Resource))
		return nil
	case apierrors.IsNotFound(err):
		for key := range wanted {
			r.targets[key] = forecast.Target{Unserved: true}
		}
		return nil
	case err != nil:
		return fmt.Errorf("list %s: %w", kind.Resource, err)
	case stateErr != nil:
		return stateErr
	case namespace != "" && !r.partial && !r.alone:
		r.Console.Note(fmt.Sprintf("note: you may not list %s in all namespaces: in other namespaces they are assumed to be healthy", kind.Resource))
	}
	for key := range wanted {
		if _, exists := r.targets[key]; !exists && (namespace == "" || key.Namespace == namespace) {
			r.targets[key] = forecast.Target{}
		}
	}
	return nil
}

// forecast simulates the restarts from now to the given time. `assumed` is the duration to assume
// for a restart whose history contains no success.
func (r *world) forecast(ctx context.Context, settings view.Settings, assumed time.Duration, until time.Time) (forecast.Forecast, error) {
	f := forecast.Run(ctx, forecast.Input{
		Restarts: r.restarts, Targets: r.targets, Freezes: r.freezes, Limits: settings.Limits, AssumedDuration: assumed,
		LeadingSince: view.LeadingSince(r.manager, r.unobserved, r.Now()).Truncate(time.Second),
		Now:          r.Now().Truncate(time.Second), Until: until.Truncate(time.Second), Namespace: r.namespace, MostListed: view.MostListed,
	})
	return f, ctx.Err()
}
