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

// putBackTimeout is how long putting a field back is tried, also after Ctrl-C.
const putBackTimeout = 10 * time.Second

// clearFailures resumes a schedule that has stopped after failures. An edit of the
// spec is what does that, and in the end nothing is to have changed: so the
// failure limit is one more until it is set back. Whatever goes wrong in between,
// the schedule is not suspended by it.
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
	// Without an answer it may have been done all the same.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), putBackTimeout)
	defer cancel()
	var last error
	if wait.PollUntilContextCancel(ctx, 500*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		if last = exchangeLimit(ctx, c, r, other, limit); last == nil {
			err = nil
			return true, nil
		}
		// It was not done, or another client has edited it since.
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

// exchangeLimit sets the failure limit if it is what it was.
func exchangeLimit(ctx context.Context, c client.Client, r *tidekeeperv1.ScheduledRestart, was, is int32, options ...client.PatchOption) error {
	change := fmt.Appendf(nil, `[{"op":"test","path":"/spec/failureLimit","value":%d},{"op":"replace","path":"/spec/failureLimit","value":%d}]`, was, is)
	return c.Patch(ctx, r.DeepCopy(), client.RawPatch(types.JSONPatchType, change), append(options, client.FieldOwner(cmdutil.FieldManager))...)
}

// refused reports whether an error is the answer that a change was not made.
func refused(err error) bool {
	status := apierrors.APIStatus(nil)
	if !errors.As(err, &status) {
		return false
	}
	code := status.Status().Code
	return code >= 400 && code < 500 && code != http.StatusRequestTimeout
}
