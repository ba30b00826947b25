// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
)

// Orphaned reports whether an opt-in created the ScheduledRestart for a workload that is not there
// any more: it was left without an owner when that was deleted, or its owner had the name and is not
// the workload that has it now. A workload that opts in takes it over. Any other did not ask to
// be restarted.
func (in *Input) Orphaned() bool {
	if _, made := in.Restart.Annotations[tidekeeperv1.AppliedAnnotation]; !made {
		return false
	}
	owner := metav1.GetControllerOf(in.Restart)
	if owner == nil {
		return true
	}
	ref := TargetRef(in.Restart.Status.Active, &in.Restart.Spec)
	return in.Target != nil && in.Target.UID != "" && owner.Kind == ref.Kind && owner.Name == ref.Name && owner.UID != in.Target.UID
}

// orphanedMessage says how an orphaned ScheduledRestart gets a workload again.
func orphanedMessage(ref tidekeeperv1.TargetRef) string {
	return fmt.Sprintf("an opt-in created it for a %s %s that was deleted: annotate the new one with %s=true, and it is taken over; remove the annotation %s to keep it without an opt-in; or delete it",
		ref.Kind, ref.Name, tidekeeperv1.OptInAnnotation, tidekeeperv1.AppliedAnnotation)
}
