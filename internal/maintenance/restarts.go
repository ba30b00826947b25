// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package maintenance

import (
	"context"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/rescue"
	"tidekeeper.dev/tidekeeper/internal/rescue/requests"
)

// restarts requests restarts of Deployments that move pods from nodes that are being drained. It
// uses ScheduledRestarts with the name of the NodeMaintenance in a label. A restart is identified
// by the time at which the drain of the node began.
type restarts struct {
	*requests.Requests
	clock clock.PassiveClock
}

func newRestarts(inner client.Client, serves func(namespace string) bool, c clock.PassiveClock) *restarts {
	return &restarts{requests.New(inner, serves, "maintenance", tidekeeperv1.NodeMaintenanceLabel), c}
}

// of returns the state of the restart of a Deployment that was requested for the given time or
// later. It returns false if no restart was requested.
func (r *restarts) of(ctx context.Context, d *appsv1.Deployment, start time.Time) (rescue.Restart, bool, error) {
	known, err := r.Known(ctx, d)
	if err != nil || known == nil {
		return rescue.Restart{}, false, err
	}
	state, requested := rescue.StateOf(known, start, r.clock.Now())
	return state, requested, nil
}

// request requests a restart of a Deployment for the given time, with a ScheduledRestart of the
// NodeMaintenance.
func (r *restarts) request(ctx context.Context, m *tidekeeperv1.NodeMaintenance, deployment *appsv1.Deployment, start time.Time) error {
	known, err := r.Known(ctx, deployment)
	if err != nil {
		return err
	}
	return r.Request(ctx, deployment, known, m.Name, start)
}

// sweep deletes a NodeMaintenance's ScheduledRestarts whose restart has ended and that no drain
// needs any more.
func (r *restarts) sweep(ctx context.Context, m *tidekeeperv1.NodeMaintenance) error {
	oldest := time.Time{}
	for _, p := range m.Status.Nodes {
		if p.Phase == tidekeeperv1.NodeDraining && (oldest.IsZero() || p.StartTime.Time.Before(oldest)) {
			oldest = p.StartTime.Time
		}
	}
	return r.Delete(ctx, func(restart *tidekeeperv1.ScheduledRestart) bool {
		last := restart.Status.LastRequestTime
		return restart.Status.Active == nil && (oldest.IsZero() || last != nil && last.Time.Before(oldest))
	}, restartsOf(m))
}

// deleteAll deletes all ScheduledRestarts of a NodeMaintenance. Rollouts in progress continue.
func (r *restarts) deleteAll(ctx context.Context, m *tidekeeperv1.NodeMaintenance) error {
	return r.Delete(ctx, func(*tidekeeperv1.ScheduledRestart) bool { return true }, restartsOf(m))
}

// restartsOf returns the list option that selects the ScheduledRestarts of a NodeMaintenance.
func restartsOf(m *tidekeeperv1.NodeMaintenance) client.MatchingLabels {
	return client.MatchingLabels{tidekeeperv1.NodeMaintenanceLabel: m.Name}
}
