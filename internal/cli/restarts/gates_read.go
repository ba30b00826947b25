// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package restarts

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/cli/cmdutil"
	"tidekeeper.dev/tidekeeper/internal/cli/freezes"
	"tidekeeper.dev/tidekeeper/internal/freeze/period"
	"tidekeeper.dev/tidekeeper/internal/restart/decision"
	"tidekeeper.dev/tidekeeper/internal/restart/scale"
	"tidekeeper.dev/tidekeeper/internal/view"
	"tidekeeper.dev/tidekeeper/internal/workload"
)

// gateReader evaluates whether restarts in a namespace would start now. It reads the Freezes, the
// manager's settings and the ScheduledRestarts only once for all restarts in the namespace.
type gateReader struct {
	*cmdutil.Env
	client    client.Client
	namespace string

	manager  view.Manager
	settings view.Settings
	freezes  []period.Period
	// known lists all ScheduledRestarts of the namespace, and the ScheduledRestarts in other
	// namespaces with a restart in progress, which use slots of the restart budget. where is a
	// remark for the budget gate if the user is not allowed to list other namespaces, and ""
	// otherwise.
	known []*tidekeeperv1.ScheduledRestart
	where string
}

// newGateReader reads the objects that determine the gates (start conditions) of all restarts in a
// namespace. The function settings returns the settings of the restart budget for a given state of
// the manager.
func newGateReader(ctx context.Context, e *cmdutil.Env, c client.Client, namespace string, settings func(view.Manager) view.Settings) (g *gateReader, err error) {
	g = &gateReader{Env: e, client: c, namespace: namespace}
	if g.manager, err = cmdutil.ManagerIfAllowed(ctx, e, c); err != nil {
		return nil, err
	}
	g.settings = settings(g.manager)
	periods, unknown, err := freezes.Read(ctx, c, []string{namespace}, e.Now())
	if err != nil {
		return nil, err
	}
	if unknown != "" {
		g.Console.Note("note: " + unknown)
	}
	g.freezes = periods[namespace]
	only, err := inNamespaces(namespace, func(in string) error {
		g.known = nil
		_, err := cmdutil.EachRestart(ctx, c, func(r *tidekeeperv1.ScheduledRestart) {
			if r.Namespace == namespace || r.Status.Active != nil {
				g.known = append(g.known, r)
			}
		}, client.InNamespace(in))
		return err
	})
	if only != "" {
		g.where = "; those of other namespaces are not counted, as you may not list them"
	}
	return g, cmdutil.AboutKind(err, restartKind.Name, namespace, "")
}

// of evaluates the gates (start conditions) of the ScheduledRestart r, whose namespace must be
// g.namespace.
func (g *gateReader) of(ctx context.Context, r *tidekeeperv1.ScheduledRestart) (view.Gates, error) {
	in := decision.Input{Restart: r, Offset: view.OffsetOf(r), Now: g.Now(), Freezes: g.freezes}
	in.Ticks, in.Windows, in.Invalid = decision.ParseSchedule(&r.Spec)
	if err := readTarget(ctx, g.client, r, &in); err != nil {
		return view.Gates{}, err
	}
	byName := map[string]*tidekeeperv1.ScheduledRestart{}
	slots := view.Slots{Of: r, Settings: g.settings}
	for _, other := range g.known {
		slots.Add(other, in.Now)
		if other.Namespace == g.namespace {
			byName[other.Name] = other
		}
	}
	if err := in.ReadOrder(func(name string) (*tidekeeperv1.ScheduledRestart, error) { return byName[name], nil }); err != nil {
		return view.Gates{}, err
	}
	return view.GatesOf(in, slots.Gate(g.where)), nil
}

// readTarget reads the state of r's target workload into `in`. If this version has no adapter for
// the workload's kind and the restart evicts pods, it reads the scale subresource instead.
func readTarget(ctx context.Context, c client.Client, r *tidekeeperv1.ScheduledRestart, in *decision.Input) (err error) {
	if _, unknown := workload.Get(r.Spec.TargetRef); unknown != nil && decision.Evicts(r) {
		return scale.Read(ctx, c, r.Namespace, r.Spec.TargetRef, in)
	}
	in.Target, in.Unserved, err = targetOf(ctx, c, r)
	return err
}

// targetOf returns the state of r's target workload, or nil if the workload does not exist.
// unserved is set if the cluster does not serve the workload's kind.
func targetOf(ctx context.Context, c client.Client, r *tidekeeperv1.ScheduledRestart) (state *workload.State, unserved bool, err error) {
	kind, err := workload.Get(r.Spec.TargetRef)
	if err != nil {
		return nil, false, err
	}
	object := kind.New()
	err = c.Get(ctx, client.ObjectKey{Namespace: r.Namespace, Name: r.Spec.TargetRef.Name}, object)
	switch {
	case apierrors.IsNotFound(err):
		// The API server responds NotFound to a get both for a missing object and for a kind that
		// it does not serve. A list request distinguishes the two.
		err := c.List(ctx, cmdutil.NewList(kind), client.InNamespace(r.Namespace), client.Limit(1))
		return nil, apierrors.IsNotFound(err), nil
	case err != nil:
		return nil, false, fmt.Errorf("get %s %s: %w", kind.Kind, r.Spec.TargetRef.Name, err)
	}
	state, err = kind.State(object)
	return state, false, err
}
