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

// SharedFor is the time for which a list from the API server is shared, so that a thousand
// restarts that are due together need a single list.
const SharedFor = sharedread.For

// shared is the last list of freezes from the API server.
type shared struct {
	reads sharedread.Reads[struct{}, []tidekeeperv1.Freeze]
}

// list returns the freezes as the API server had them at notBefore or later, and not longer
// than SharedFor ago.
func (s *shared) list(ctx context.Context, reader client.Reader, notBefore time.Time, c clock.PassiveClock) ([]tidekeeperv1.Freeze, error) {
	return s.reads.Get(ctx, struct{}{}, c.Now(), notBefore, func(ctx context.Context) ([]tidekeeperv1.Freeze, error) {
		list := &tidekeeperv1.FreezeList{}
		if err := reader.List(ctx, list); err != nil && !apierrors.IsNotFound(err) { // If the CRD is not installed, there are no Freezes.
			return nil, fmt.Errorf("list freezes: %w", err)
		}
		return list.Items, nil
	})
}
