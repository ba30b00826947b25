// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
)

// Orphaned reports whether the ScheduledRestart was created by an opt-in of a workload that no
// longer exists. Either it has no owner any more, or its owner was replaced with another workload
// of the same name. If that workload opts in, it adopts the ScheduledRestart; otherwise it must not
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

// orphanedMessage explains what makes an orphaned ScheduledRestart apply to a workload again.
func orphanedMessage(ref tidekeeperv1.TargetRef) string {
	return fmt.Sprintf("an opt-in created it for a %s %s that was deleted: annotate the new one with %s=true, and it is taken over; remove the annotation %s to keep it without an opt-in; or delete it",
		ref.Kind, ref.Name, tidekeeperv1.OptInAnnotation, tidekeeperv1.AppliedAnnotation)
}
