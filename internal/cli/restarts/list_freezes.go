// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package restarts

import (
	"context"
	"slices"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/cli/freezes"
	"tidekeeper.dev/tidekeeper/internal/freeze/period"
	"tidekeeper.dev/tidekeeper/internal/view"
)

// freezesAge is how old the freezes may be that a line of restarts -w is shown with.
const freezesAge = 10 * time.Second

// freezeLook is what was read of the freezes of a namespace.
type freezeLook struct {
	at      time.Time
	periods []period.Period
}

// namespacesOf returns the namespaces of some ScheduledRestarts.
func namespacesOf(items []tidekeeperv1.ScheduledRestart) []string {
	var namespaces []string
	for i := range items {
		if namespace := items[i].Namespace; !slices.Contains(namespaces, namespace) {
			namespaces = append(namespaces, namespace)
		}
	}
	return namespaces
}

// lookAtFreezes reads the freezes of some namespaces, as far as the user may.
func (o *listOptions) lookAtFreezes(ctx context.Context, c client.Client, namespaces []string) error {
	now := o.Now()
	periods, unknown, err := freezes.Read(ctx, c, namespaces, now)
	if unknown != "" {
		o.Console.Note("note: " + unknown)
	}
	if o.frozen == nil {
		o.frozen = map[string]freezeLook{}
	}
	for _, namespace := range namespaces {
		o.frozen[namespace] = freezeLook{now, periods[namespace]}
	}
	return err
}

// followFreezes reads the freezes of a namespace again if the last look is old. What cannot be
// read stays as it was.
func (o *listOptions) followFreezes(ctx context.Context, c client.Client, namespace string) {
	now := o.Now()
	if last, known := o.frozen[namespace]; known && now.Sub(last.at) < freezesAge {
		return
	}
	if periods, _, err := freezes.Read(ctx, c, []string{namespace}, now); err == nil {
		o.frozen[namespace] = freezeLook{now, periods[namespace]}
	}
}

// restart returns what is shown of a ScheduledRestart.
func (o *listOptions) restart(r *tidekeeperv1.ScheduledRestart, now time.Time) view.Restart {
	shown := view.RestartOf(r, o.shared)
	shown.AddFreezes(r, o.frozen[r.Namespace].periods, now)
	return shown
}
