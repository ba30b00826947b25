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

// noticeWithin is how long a request waits for a sign that a manager runs, where no lease says so.
const noticeWithin = 5 * time.Second

// asker requests restarts of a namespace, and says of each what it waits for.
type asker struct {
	*cmdutil.Env
	client  client.Client
	options []client.PatchOption
	// gates is nil for users who may not read what decides.
	gates *gateReader
	// asked are the ScheduledRestarts that were asked for, as they were.
	asked []*tidekeeperv1.ScheduledRestart
	last  *tidekeeperv1.ScheduledRestart
}

// requested is what a request has come to.
type requested struct {
	text string
	// warnings say what the restart waits for, or why it will not start.
	warnings []string
	// alsoBy are other ScheduledRestarts of the same workload.
	alsoBy []string
}

// newAsker returns an asker. What it may not read makes it say less.
func newAsker(ctx context.Context, e *cmdutil.Env, c client.Client, namespace string, options []client.PatchOption) *asker {
	a := &asker{Env: e, client: c, options: options}
	if gates, err := newGateReader(ctx, e, c, namespace, func(m view.Manager) view.Settings { return view.SettingsOf(m.Published) }); err == nil {
		a.gates = gates
	}
	return a
}

// request requests a restart of one ScheduledRestart. The gates are those of before: the request
// may be served at once.
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

// queue says what the requested restart follows. One that evicts may leave it nothing to do.
func queue(r *tidekeeperv1.ScheduledRestart) string {
	active := r.Status.Active
	switch {
	case active == nil:
		return ""
	case active.Eviction != nil && active.Eviction.Refused != "":
		return "; one is under way, in which " + active.Eviction.Refused + ", and this one follows it if pods older than this request are left then"
	case active.Eviction != nil:
		return "; one is under way, and this one follows it if pods older than this request are left then"
	default:
		return "; one is under way, and this one follows it"
	}
}

// noManager says that no manager runs that could serve the requests, "" if nothing suggests that.
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
	// A manager without leader election is seen by what it does.
	err = wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, noticeWithin, true, func(ctx context.Context) (bool, error) {
		err := a.client.Get(ctx, client.ObjectKeyFromObject(a.last), a.last)
		return err == nil && view.NoticesRequest(a.last, a.Now()), err
	})
	if wait.Interrupted(err) && ctx.Err() == nil {
		return "no manager has noticed the request yet", nil
	}
	return "", client.IgnoreNotFound(errors.Join(err, ctx.Err()))
}

// noteManager says on stderr that no manager runs.
func (a *asker) noteManager(ctx context.Context, dryRun bool) error {
	problem, err := a.noManager(ctx, dryRun)
	if problem != "" {
		a.Console.Note("note: " + problem + ": " + cmdutil.ThenRequest + ": see kubectl tide check")
	}
	return err
}
