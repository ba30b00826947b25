// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package maintenance

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/maintenance/moves"
	"tidekeeper.dev/tidekeeper/internal/restart/decision"
	"tidekeeper.dev/tidekeeper/internal/workload"
)

// unservedAfter is the time after which the manager gives up on a ScheduledRestart that no manager
// has observed.
const unservedAfter = 2 * time.Minute

// restarts requests restarts of Deployments, which move their pods. It requests each restart with a
// suspended ScheduledRestart, so that the restart has the same health gate, budget and history as
// other restarts. The time at which the node's drain began identifies the restart: even if it is
// requested repeatedly, the Deployment is restarted only once.
type restarts struct {
	client client.Client
	clock  clock.PassiveClock
	// served is true if this manager runs the controller that restarts workloads.
	served bool
}

// of returns the state of the restart of a Deployment that was requested at or after the given
// time; false if no restart was requested.
func (r *restarts) of(ctx context.Context, d *appsv1.Deployment, start time.Time) (moves.Restart, bool, error) {
	restart := &tidekeeperv1.ScheduledRestart{}
	if err := r.client.Get(ctx, types.NamespacedName{Namespace: d.Namespace, Name: nameFor(d)}, restart); err != nil {
		return moves.Restart{}, false, client.IgnoreNotFound(err)
	}
	state, requested := stateOf(restart, start, r.clock.Now())
	return state, requested, nil
}

// stateOf returns the state of a restart that was requested at or after `start`; false if no
// restart was requested.
func stateOf(restart *tidekeeperv1.ScheduledRestart, start, now time.Time) (moves.Restart, bool) {
	requested, err := decision.RequestedTime(restart, now)
	waits := moves.Restart{State: moves.Waiting}
	if ready := meta.FindStatusCondition(restart.Status.Conditions, tidekeeperv1.ConditionReady); ready != nil && ready.Reason != tidekeeperv1.ReasonSuspended && ready.Reason != tidekeeperv1.ReasonRestarting {
		waits.Message = ready.Message
	}
	switch last := restart.Status.LastRequestTime; {
	case restart.Status.Active != nil:
		return moves.Restart{State: moves.Running}, true // A restart in progress for an earlier drain also replaces the pods.
	case last != nil && err == nil && requested.After(last.Time) && !requested.Before(start):
		return waits, true
	case last != nil && !last.Time.Before(start):
		return outcomeOf(restart, start), true
	case err != nil || requested.Before(start):
		return moves.Restart{}, false
	case restart.Status.ObservedGeneration == 0 && now.Sub(restart.CreationTimestamp.Time) > unservedAfter:
		return moves.Restart{State: moves.Failed, Message: "no manager serves ScheduledRestarts of its namespace"}, true
	default:
		return waits, true
	}
}

// outcomeOf returns the outcome of the last restart that was requested at or after `start`.
func outcomeOf(restart *tidekeeperv1.ScheduledRestart, start time.Time) moves.Restart {
	for i := range restart.Status.History {
		record := &restart.Status.History[i]
		if record.ScheduledTime.Time.Before(start) {
			continue
		}
		if record.Outcome == tidekeeperv1.OutcomeSucceeded {
			return moves.Restart{State: moves.Succeeded, Tick: record.ScheduledTime.Time}
		}
		return moves.Restart{State: moves.Failed, Tick: record.ScheduledTime.Time, Message: fmt.Sprintf("%s, %s: %s", record.Outcome, record.Reason, cmp.Or(record.Message, "see its history"))}
	}
	return moves.Restart{State: moves.Succeeded, Tick: restart.Status.LastRequestTime.Time}
}

// request requests a restart of a Deployment for the given time. If a restart for that time has
// already ended, it requests a restart for a later time.
func (r *restarts) request(ctx context.Context, m *tidekeeperv1.NodeMaintenance, deployment *appsv1.Deployment, start time.Time) error {
	known := &tidekeeperv1.ScheduledRestart{}
	err := r.client.Get(ctx, types.NamespacedName{Namespace: deployment.Namespace, Name: nameFor(deployment)}, known)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("get ScheduledRestart %s: %w", nameFor(deployment), err)
	}
	if last := known.Status.LastRequestTime; last != nil && !start.After(last.Time) {
		start = last.Add(time.Second)
	}
	at := workload.FormatTime(start)
	restart := &tidekeeperv1.ScheduledRestart{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: deployment.Namespace, Name: nameFor(deployment),
			Labels:      map[string]string{tidekeeperv1.NodeMaintenanceLabel: m.Name},
			Annotations: map[string]string{tidekeeperv1.RestartNowAnnotation: at},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: appsv1.SchemeGroupVersion.String(), Kind: "Deployment", Name: deployment.Name, UID: deployment.UID,
			}},
		},
		Spec: tidekeeperv1.ScheduledRestartSpec{
			TargetRef: tidekeeperv1.TargetRef{APIVersion: appsv1.SchemeGroupVersion.String(), Kind: "Deployment", Name: deployment.Name},
			Schedule:  "@yearly", Suspend: true,
		},
	}
	err = r.client.Create(ctx, restart)
	if !apierrors.IsAlreadyExists(err) {
		if err != nil {
			return fmt.Errorf("create ScheduledRestart %s: %w", restart.Name, err)
		}
		return nil
	}
	patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:%q},"labels":{%q:%q}}}`, tidekeeperv1.RestartNowAnnotation, at, tidekeeperv1.NodeMaintenanceLabel, m.Name)
	if err := r.client.Patch(ctx, restart, client.RawPatch(types.MergePatchType, []byte(patch))); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("request a restart by ScheduledRestart %s: %w", restart.Name, err)
	}
	return nil
}

// nameFor returns the name of the ScheduledRestart that moves the pods of a Deployment. For a
// Deployment that was deleted and recreated, the name is different.
func nameFor(d *appsv1.Deployment) string {
	const longest = 200
	hash := sha256.Sum256([]byte(d.UID))
	return strings.TrimRight(d.Name[:min(len(d.Name), longest)], "-.") + "-maintenance-" + hex.EncodeToString(hash[:4])
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
	return r.delete(ctx, m, func(restart *tidekeeperv1.ScheduledRestart) bool {
		last := restart.Status.LastRequestTime
		return restart.Status.Active == nil && (oldest.IsZero() || last != nil && last.Time.Before(oldest))
	})
}

// deleteAll deletes all ScheduledRestarts of a NodeMaintenance. Rollouts in progress continue.
func (r *restarts) deleteAll(ctx context.Context, m *tidekeeperv1.NodeMaintenance) error {
	return r.delete(ctx, m, func(*tidekeeperv1.ScheduledRestart) bool { return true })
}

func (r *restarts) delete(ctx context.Context, m *tidekeeperv1.NodeMaintenance, unused func(*tidekeeperv1.ScheduledRestart) bool) error {
	if !r.served {
		return nil
	}
	list := &tidekeeperv1.ScheduledRestartList{}
	if err := r.client.List(ctx, list, client.MatchingLabels{tidekeeperv1.NodeMaintenanceLabel: m.Name}, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list the ScheduledRestarts that moved pods: %w", err)
	}
	for i := range list.Items {
		restart := &list.Items[i]
		if !unused(restart) || !strings.Contains(restart.Name, "-maintenance-") {
			continue
		}
		err := r.client.Delete(ctx, &tidekeeperv1.ScheduledRestart{ObjectMeta: metav1.ObjectMeta{Namespace: restart.Namespace, Name: restart.Name}},
			client.Preconditions{UID: &restart.UID, ResourceVersion: &restart.ResourceVersion})
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			return fmt.Errorf("delete ScheduledRestart %s: %w", restart.Name, err)
		}
	}
	return nil
}
