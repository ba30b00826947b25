// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package restarts

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/cli/cmdutil"
)

// putBackTimeout is the time limit for restoring the original failure limit. Until then, the
// command retries the patch, even after Ctrl-C.
const putBackTimeout = 10 * time.Second

// clearFailures resumes a schedule that stopped after too many failures. The manager only resumes
// the schedule after a change of the spec, but the user wants to keep the spec. So clearFailures
// changes the failure limit by 1, and then restores the original limit. The schedule continues even
// if restoring the limit fails.
func clearFailures(ctx context.Context, c client.Client, r *tidekeeperv1.ScheduledRestart, dryRun bool) error {
	limit, other := r.Spec.FailureLimit, r.Spec.FailureLimit+1
	if limit >= tidekeeperv1.MaxFailureLimit {
		other = limit - 1
	}
	if dryRun {
		return exchangeLimit(ctx, c, r, limit, other, client.DryRunAll)
	}
	err := exchangeLimit(ctx, c, r, limit, other)
	if refused(err) {
		return err // nothing has changed
	}
	// Restore the limit even after an error, because the API server may have applied the patch
	// although its response was lost.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), putBackTimeout)
	defer cancel()
	var last error
	if wait.PollUntilContextCancel(ctx, 500*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		if last = exchangeLimit(ctx, c, r, other, limit); last == nil {
			err = nil
			return true, nil
		}
		// If the current limit is not the temporary limit, either the first patch was not applied,
		// or another client has changed the limit. In both cases, there is nothing to restore.
		now := &tidekeeperv1.ScheduledRestart{}
		return c.Get(ctx, client.ObjectKeyFromObject(r), now) == nil && now.Spec.FailureLimit != other, nil
	}) != nil {
		_, reason := cmdutil.ExplainError(last)
		return fmt.Errorf("%[1]s may have the failureLimit %[2]d instead of %[3]d, with which its schedule continues: "+
			`kubectl patch %[1]s -n %[4]s --type=merge -p '{"spec":{"failureLimit":%[3]d}}' puts it back (%[5]s)`,
			displayName(r), other, limit, r.Namespace, reason)
	}
	return err
}

// exchangeLimit changes the failure limit of a ScheduledRestart from `was` to `is`. It fails if
// another client has changed the limit.
func exchangeLimit(ctx context.Context, c client.Client, r *tidekeeperv1.ScheduledRestart, was, is int32, options ...client.PatchOption) error {
	change := fmt.Appendf(nil, `[{"op":"test","path":"/spec/failureLimit","value":%d},{"op":"replace","path":"/spec/failureLimit","value":%d}]`, was, is)
	return c.Patch(ctx, r.DeepCopy(), client.RawPatch(types.JSONPatchType, change), append(options, client.FieldOwner(cmdutil.FieldManager))...)
}

// refused reports whether err shows that the API server rejected a patch with a 4xx status, so that
// nothing was changed.
func refused(err error) bool {
	status := apierrors.APIStatus(nil)
	if !errors.As(err, &status) {
		return false
	}
	code := status.Status().Code
	return code >= 400 && code < 500 && code != http.StatusRequestTimeout
}
