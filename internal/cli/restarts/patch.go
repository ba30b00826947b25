// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package restarts

import (
	"context"
	"encoding/json"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
)

// displayName returns the name of a ScheduledRestart as kubectl prints it.
func displayName(r *tidekeeperv1.ScheduledRestart) string {
	return "scheduledrestart.tidekeeper.dev/" + r.Name
}

// patchRestart applies a merge patch to r, and updates r from the response.
func patchRestart(ctx context.Context, c client.Client, r *tidekeeperv1.ScheduledRestart, change map[string]any, options []client.PatchOption) error {
	text, err := json.Marshal(change)
	if err != nil {
		return err
	}
	return c.Patch(ctx, r, client.RawPatch(types.MergePatchType, text), options...)
}
