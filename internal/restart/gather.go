// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package restart

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/freeze"
	"tidekeeper.dev/tidekeeper/internal/restart/decision"
	"tidekeeper.dev/tidekeeper/internal/restart/order"
	"tidekeeper.dev/tidekeeper/internal/restart/query"
)

// gatherer reads the facts that a decision about a ScheduledRestart depends on, from the cache or
// the API server.
type gatherer struct {
	client  client.Reader
	clock   clock.PassiveClock
	targets *targets
	pods    *podReader
	freezes *freeze.Reader
	order   *order.Graph
	configs *configReader
	// queries evaluates the administrator's Prometheus queries; nil if no queries are configured.
	queries   *query.Evaluator
	memories  *memories
	claims    *claims
	evictions *evictionAttempts
	refusals  *refusals
	slots     *slots
	overdue   *overdue
	storms    *storms
	// changeSettle is the time without changes after which the ConfigMaps and Secrets that pods use
	// count as settled.
	changeSettle time.Duration
}

// decide makes a decision, reads the fact that it needs, and repeats this until no fact is missing.
// It returns the decision and its target.
func (g *gatherer) decide(ctx context.Context, key types.NamespacedName, restart *tidekeeperv1.ScheduledRestart, leadingSince time.Time) (decision.Output, *target, error) {
	in := decision.Input{
		Restart:       restart,
		SlotAge:       g.slots.age,
		ChangeSettle:  g.changeSettle,
		FreezesShared: freeze.SharedFor, FreezeConfirmed: freeze.ConfirmedFor,
		Sent:         g.memories.lastSent(key, restart.UID),
		LeadingSince: leadingSince,
		Now:          g.clock.Now().Round(0),
	}
	in.Slots = g.slots.of(key.Namespace)
	in.Offset = decision.Offset(restart, in.Now)
	in.ClaimAhead = g.claims.ahead(key)
	in.BeforeClaim = g.claims.before(key, restart)
	in.Attempts = g.evictions.of(key, restart)
	in.SendFailure = g.refusals.ofSend(key, restart)
	in.Ticks, in.Windows, in.Invalid = decision.ParseSchedule(&restart.Spec)
	t, err := g.targets.read(ctx, g.targets.client, restart, &in)
	if err != nil {
		return decision.Output{}, nil, err
	}
	if in.Freezes, err = g.freezes.In(ctx, restart.Namespace); err != nil {
		return decision.Output{}, nil, err
	}
	if err := g.readOrder(ctx, &in); err != nil {
		return decision.Output{}, nil, err
	}
	if err := g.readConfig(ctx, &in, false); err != nil {
		return decision.Output{}, nil, err
	}
	workload := decision.TargetRef(restart.Status.Active, &restart.Spec).Name
	in.Queried, in.Answer = g.queries != nil, g.queries.Answer(key, workload)
	for {
		d := decision.Decide(in)
		switch d.Needs {
		case decision.NeedLiveTarget:
			in.Live = true
			if t, err = g.targets.read(ctx, g.targets.apiReader, restart, &in); err == nil {
				err = g.readConfig(ctx, &in, false)
			}
		case decision.NeedRolledOut:
			t, err = g.targets.readRolledOut(ctx, restart, t, &in)
		case decision.NeedPodStartups:
			in.PodStartups = g.pods.startups(ctx, restart.Namespace, t.kind, in.Target)
		case decision.NeedPodAges:
			in.PodAges, err = g.pods.ages(restart.Namespace, in.Target)
		case decision.NeedLivePodAges:
			in.PodAges, err = g.pods.liveAges(ctx, restart.Namespace, in.Target)
		case decision.NeedPods:
			in.Pods, err = g.pods.look(ctx, restart.Namespace, in.Target)
			g.evictions.note(key, restart, func(a *decision.Attempts) { a.LookedAt = g.clock.Now() })
		case decision.NeedLiveConfig:
			err = g.readConfig(ctx, &in, true)
		case decision.NeedSlot:
			in.HasSlot = g.slots.budget.Take(key, d.WaitingSince)
			in.Slots = g.slots.of(key.Namespace)
		case decision.NeedSpareSlot:
			in.HasSlot = g.slots.budget.Spare(key)
		case decision.NeedLiveFreezes:
			in.FreezesLive = true
			in.Freezes, err = g.freezes.LiveIn(ctx, restart.Namespace, d.Due)
		}
		if err != nil {
			return decision.Output{}, nil, err
		}
		if d.Needs == decision.NeedAnswer {
			g.queries.Ask(ctx, key, workload)
			return d, t, nil
		}
		withoutSlot := !in.HasSlot && (d.Needs == decision.NeedSlot || d.Needs == decision.NeedSpareSlot)
		if d.Needs == decision.NeedNothing || withoutSlot {
			g.overdue.observe(key, restart, &d.Status, &in)
			g.storms.observe(key, restart, &d.Status, &in)
			return d, t, nil
		}
	}
}
