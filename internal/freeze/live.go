// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package freeze

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/cache/sharedread"
)

// SharedFor is the time for which callers share a list of Freezes from the API server, so that a
// thousand restarts with the same due time cause a single list call.
const SharedFor = sharedread.For

// shared holds the last list of Freezes from the API server, for concurrent callers.
type shared struct {
	reads sharedread.Reads[struct{}, []tidekeeperv1.Freeze]
}

// list returns the Freezes from a list call to the API server. The call began at notBefore or
// later, and at most [SharedFor] ago.
func (s *shared) list(ctx context.Context, reader client.Reader, notBefore time.Time, c clock.PassiveClock) ([]tidekeeperv1.Freeze, error) {
	return s.reads.Get(ctx, struct{}{}, c.Now(), notBefore, func(ctx context.Context) ([]tidekeeperv1.Freeze, error) {
		list := &tidekeeperv1.FreezeList{}
		if err := reader.List(ctx, list); err != nil && !apierrors.IsNotFound(err) { // If the CRD is not installed, there are no Freezes.
			return nil, fmt.Errorf("list freezes: %w", err)
		}
		return list.Items, nil
	})
}
