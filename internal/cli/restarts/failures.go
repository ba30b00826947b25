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

// putBackTimeout is how long restoring the field is retried, even after Ctrl-C.
const putBackTimeout = 10 * time.Second

// clearFailures resumes a schedule that has stopped after failures. Only an edit of the spec makes the
// manager do that, and the spec must be the same afterwards: so the failure limit is changed by 1 and
// restored. This field is chosen because the schedule continues even if restoring it fails.
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
	// If the response was lost, the API server may still have applied the patch.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), putBackTimeout)
	defer cancel()
	var last error
	if wait.PollUntilContextCancel(ctx, 500*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		if last = exchangeLimit(ctx, c, r, other, limit); last == nil {
			err = nil
			return true, nil
		}
		// If the limit is not the temporary limit, the first patch was not applied, or another client
		// has edited it since: there is nothing to restore.
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

// exchangeLimit sets the failure limit, unless another client has changed it.
func exchangeLimit(ctx context.Context, c client.Client, r *tidekeeperv1.ScheduledRestart, was, is int32, options ...client.PatchOption) error {
	change := fmt.Appendf(nil, `[{"op":"test","path":"/spec/failureLimit","value":%d},{"op":"replace","path":"/spec/failureLimit","value":%d}]`, was, is)
	return c.Patch(ctx, r.DeepCopy(), client.RawPatch(types.JSONPatchType, change), append(options, client.FieldOwner(cmdutil.FieldManager))...)
}

// refused reports whether an error is the API server's response that it did not apply a patch.
func refused(err error) bool {
	status := apierrors.APIStatus(nil)
	if !errors.As(err, &status) {
		return false
	}
	code := status.Status().Code
	return code >= 400 && code < 500 && code != http.StatusRequestTimeout
}
