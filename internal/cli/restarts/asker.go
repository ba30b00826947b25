// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package restarts

import (
	"context"
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/cli/cmdutil"
	"tidekeeper.dev/tidekeeper/internal/view"
)

// noticeWithin is the time to wait for a manager to react to a request if no lease names a leader.
const noticeWithin = 5 * time.Second

// asker requests restarts of workloads in a namespace, and reports why a requested restart waits.
type asker struct {
	*cmdutil.Env
	client  client.Client
	options []client.PatchOption
	// gates evaluates the gates (start conditions) of a restart, to explain why the restart waits.
	// It is nil if the objects that the gates depend on could not be read.
	gates *gateReader
	// asked lists the ScheduledRestarts for which a restart was requested, in their state before
	// the request. last is the latest of them, in its state after the request.
	asked []*tidekeeperv1.ScheduledRestart
	last  *tidekeeperv1.ScheduledRestart
}

// requested describes a restart request that was sent.
type requested struct {
	// at is the scheduled time (tick) of the requested restart.
	at   time.Time
	text string
	// warnings lists the reasons why the restart waits, or will not start.
	warnings []string
	// alsoBy lists the other ScheduledRestarts of the same workload.
	alsoBy []string
}

// newAsker returns an asker for the given namespace. If the objects that determine whether a
// restart starts cannot be read, the asker still requests restarts, but does not report why
// restarts wait.
func newAsker(ctx context.Context, e *cmdutil.Env, c client.Client, namespace string, options []client.PatchOption) *asker {
	a := &asker{Env: e, client: c, options: options}
	if gates, err := newGateReader(ctx, e, c, namespace, func(m view.Manager) view.Settings { return view.SettingsOf(m.Published) }); err == nil {
		a.gates = gates
	}
	return a
}

// request requests a restart of r's workload. It evaluates the gates (start conditions) before it
// sends the patch. After the patch, the manager may start the restart immediately, and the gates
// would report that restart as an obstacle.
func (a *asker) request(ctx context.Context, r *tidekeeperv1.ScheduledRestart) (done requested, err error) {
	before := r.DeepCopy()
	var gates view.Gates
	if a.gates != nil {
		gates, _ = a.gates.of(ctx, before)
		shared := view.Shared{}
		for _, other := range a.gates.known {
			if other.Namespace == r.Namespace {
				shared.Add(other)
			}
		}
		done.alsoBy = view.RestartOf(before, shared).AlsoBy
	}
	at := requestTime(r, a.Now())
	done.at = at
	change := map[string]any{"metadata": map[string]any{"annotations": map[string]any{tidekeeperv1.RestartNowAnnotation: at.Format(time.RFC3339)}}}
	if err := patchRestart(ctx, a.client, r, change, a.options); err != nil {
		return done, err
	}
	a.asked, a.last = append(a.asked, before), r.DeepCopy()
	done.text = "requested a restart of " + r.Spec.TargetRef.Kind + " " + r.Spec.TargetRef.Name + " at " + at.Format(time.RFC3339) + queue(before)
	if status := view.RestartOf(before, nil).Status; status.Reason == view.Unknown {
		done.warnings = append(done.warnings, status.Message)
	}
	done.warnings = append(done.warnings, gates.Obstacles(before, at)...)
	return done, nil
}

// queue returns a phrase about the restart in progress, which the requested restart will follow. It
// returns "" if no restart is in progress. A restart that evicts pods may leave no pods that are
// older than the request. The requested restart then does not take place.
func queue(r *tidekeeperv1.ScheduledRestart) string {
	active := r.Status.Active
	switch {
	case active == nil:
		return ""
	case active.Eviction != nil && active.Eviction.Refused != "":
		return "; a restart is in progress, in which " + active.Eviction.Refused + ", and this one follows it if pods older than this request are left by then"
	case active.Eviction != nil:
		return "; a restart is in progress, and this one follows it if pods older than this request are left by then"
	default:
		return "; a restart is in progress, and this one follows it"
	}
}

// noManager describes the evidence that no manager is running to carry out the requested restarts.
// It returns "" if there is no evidence. In a dry run, it does not wait for a manager to react.
func (a *asker) noManager(ctx context.Context, dryRun bool) (string, error) {
	m, err := cmdutil.ManagerIfAllowed(ctx, a.Env, a.client)
	if err != nil || m.Leader != "" || a.last == nil {
		return "", err
	}
	var unobserved view.Unobserved
	for _, r := range a.asked {
		unobserved.AddRestart(r, a.Now())
	}
	if problem := view.Outdated(m, unobserved, a.Now()); problem != "" || dryRun {
		return problem, nil
	}
	// A manager without leader election holds no lease. Only updates of the ScheduledRestart's
	// status show that such a manager is running.
	err = wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, noticeWithin, true, func(ctx context.Context) (bool, error) {
		err := a.client.Get(ctx, client.ObjectKeyFromObject(a.last), a.last)
		return err == nil && view.NoticesRequest(a.last, a.Now()), err
	})
	if wait.Interrupted(err) && ctx.Err() == nil {
		return "no manager has noticed the request yet", nil
	}
	return "", client.IgnoreNotFound(errors.Join(err, ctx.Err()))
}

// noteManager prints a note to stderr if there is evidence that no manager is running.
func (a *asker) noteManager(ctx context.Context, dryRun bool) error {
	problem, err := a.noManager(ctx, dryRun)
	if problem != "" {
		a.Console.Note("note: " + problem + ": " + cmdutil.ThenRequest + ": see kubectl tide check")
	}
	return err
}
