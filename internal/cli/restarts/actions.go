// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package restarts

import (
	"context"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/cli/cmdutil"
	"tidekeeper.dev/tidekeeper/internal/view"
)

// requestRestart requests a restart of one ScheduledRestart, and returns its tick.
func requestRestart(ctx context.Context, c client.Client, r *tidekeeperv1.ScheduledRestart, now time.Time, options []client.PatchOption) (tick string, err error) {
	tick = requestTime(r, now).Format(time.RFC3339)
	change := map[string]any{"metadata": map[string]any{"annotations": map[string]any{tidekeeperv1.RestartNowAnnotation: tick}}}
	return tick, patchRestart(ctx, c, r, change, options)
}

// Actions do to one ScheduledRestart what the commands now, suspend and resume do. Each returns
// what it did, in a sentence.
type Actions struct {
	*cmdutil.Env
	Client client.Client
}

// RestartNow requests a restart.
func (a *Actions) RestartNow(ctx context.Context, namespace, name string) (string, error) {
	r, err := getRestart(ctx, a.Client, namespace, name)
	if err != nil {
		return "", err
	}
	tick, err := requestRestart(ctx, a.Client, r, a.Now(), a.options())
	if err != nil {
		return "", err
	}
	text := "requested a restart of " + r.Spec.TargetRef.Kind + " " + r.Spec.TargetRef.Name + " at " + tick + queue(r)
	if warning := obstacle(view.RestartOf(r, nil)); warning != "" {
		text += "; but " + warning
	}
	return text, nil
}

// Suspend suspends the schedule.
func (a *Actions) Suspend(ctx context.Context, namespace, name string) (string, error) {
	return a.change(ctx, namespace, name, (*suspendOptions).suspend)
}

// Resume resumes the schedule.
func (a *Actions) Resume(ctx context.Context, namespace, name string) (string, error) {
	return a.change(ctx, namespace, name, (*suspendOptions).resume)
}

func (a *Actions) change(ctx context.Context, namespace, name string, do func(*suspendOptions, context.Context, client.Client, *tidekeeperv1.ScheduledRestart) (string, error)) (string, error) {
	r, err := getRestart(ctx, a.Client, namespace, name)
	if err != nil {
		return "", err
	}
	done, err := do(&suspendOptions{targets: targets{Env: a.Env}}, ctx, a.Client, r)
	return name + " " + done, err
}

func (a *Actions) options() []client.PatchOption {
	return []client.PatchOption{client.FieldOwner(cmdutil.FieldManager)}
}
