// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package restarts

import (
	"context"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/cli/cmdutil"
)

// Actions runs the commands now, suspend and resume on a single ScheduledRestart for the dashboard.
// Each method returns the outcome as a sentence.
type Actions struct {
	*cmdutil.Env
	Client client.Client
}

// RestartNow requests a restart by the named ScheduledRestart, like `kubectl tide restarts now`.
func (a *Actions) RestartNow(ctx context.Context, namespace, name string) (string, error) {
	r, err := getRestart(ctx, a.Client, namespace, name)
	if err != nil {
		return "", err
	}
	asker := newAsker(ctx, a.Env, a.Client, namespace, a.options())
	done, err := asker.request(ctx, r)
	if err != nil {
		return "", err
	}
	text := done.text
	if len(done.warnings) > 0 {
		text += "; but " + strings.Join(done.warnings, "; ")
	}
	problem, err := asker.noManager(ctx, false)
	if problem != "" {
		text += "; " + problem + ": " + cmdutil.ThenRequest
	}
	return text, err
}

// Suspend suspends the schedule of the named ScheduledRestart, like `kubectl tide restarts
// suspend`.
func (a *Actions) Suspend(ctx context.Context, namespace, name string) (string, error) {
	return a.change(ctx, namespace, name, (*suspendOptions).suspend)
}

// Resume resumes the schedule of the named ScheduledRestart, like `kubectl tide restarts resume`.
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
