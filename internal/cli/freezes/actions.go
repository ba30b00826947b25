// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package freezes

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"tidekeeper.dev/tidekeeper/internal/cli/cmdutil"
)

// Actions runs the commands freeze and thaw for the dashboard. Each method returns the outcome as a
// sentence.
type Actions struct {
	*cmdutil.Env
	Client client.Client
}

// Freeze creates a Freeze for the given namespaces; an empty list means all namespaces. As in the
// command, `until` is a duration from now, or a time with a time zone.
func (a *Actions) Freeze(ctx context.Context, namespaces []string, until, reason string) (string, error) {
	if _, err := moment("--until", until, a.Now()); err != nil && until != "" {
		return "", fmt.Errorf("“%s” is not a time: write 4h, 7d, or 2026-12-27T08:00:00Z", until)
	}
	o := &freezeOptions{Env: a.Env, until: until, reason: reason, namespaces: namespaces, dryRun: cmdutil.DryRunNone}
	if err := o.Validate(); err != nil {
		return "", errors.New(strings.TrimLeft(err.Error(), "-")) // The dashboard's form fields have the names of the flags, without dashes.
	}
	f, err := o.create(ctx, a.Client)
	if err != nil {
		return "", err
	}
	return o.done(f), nil
}

// Thaw deletes the Freeze with this name and UID. It does not delete a new Freeze of the same name,
// because the user has not seen it on the page.
func (a *Actions) Thaw(ctx context.Context, name string, uid types.UID) (string, error) {
	o := &thawOptions{Env: a.Env, name: name, uid: uid, dryRun: cmdutil.DryRunNone}
	return o.lift(ctx, a.Client)
}
