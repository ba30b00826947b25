// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package freezes

import (
	"context"
	"errors"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"tidekeeper.dev/tidekeeper/internal/cli/cmdutil"
)

// Actions are the actions of the commands freeze and thaw. Each returns its result, in a sentence.
type Actions struct {
	*cmdutil.Env
	Client client.Client
}

// Freeze creates a Freeze for these namespaces; an empty list means all. until is a duration from now
// or a time with its zone, as for the command.
func (a *Actions) Freeze(ctx context.Context, namespaces []string, until, reason string) (string, error) {
	o := &freezeOptions{Env: a.Env, until: until, reason: reason, namespaces: namespaces, dryRun: "none"}
	if err := o.Validate(); err != nil {
		return "", errors.New(strings.TrimLeft(err.Error(), "-")) // The fields of the page's form have the names of the flags.
	}
	f, err := o.create(ctx, a.Client)
	if err != nil {
		return "", err
	}
	return o.done(f), nil
}

// Thaw deletes the Freeze with this name and UID. A Freeze that was created later under the same name
// is left alone: the user of the page has not seen it.
func (a *Actions) Thaw(ctx context.Context, name string, uid types.UID) (string, error) {
	o := &thawOptions{Env: a.Env, name: name, uid: uid, dryRun: "none"}
	return o.lift(ctx, a.Client)
}
