// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/text"
)

// conditions sets the conditions in the status of a NodeMaintenance.
type conditions struct {
	state *state
	waits *waiting
}

// set sets the conditions Ready, Stalled and Reconciling. invalid is the error in the schedule, the
// windows or the time zone of the spec, or nil.
func (d *conditions) set(invalid error) {
	ready, reason, message := d.ready(invalid)
	stalled := reason == tidekeeperv1.ReasonInvalidSchedule || reason == tidekeeperv1.ReasonFailureLimit
	reconciling := !stalled && reason != tidekeeperv1.ReasonComplete && reason != tidekeeperv1.ReasonSuspended && reason != tidekeeperv1.ReasonNoNodes
	d.condition(tidekeeperv1.ConditionReady, ready, true, reason, message)
	d.condition(tidekeeperv1.ConditionStalled, true, stalled, reason, message)
	d.condition(tidekeeperv1.ConditionReconciling, true, reconciling, reason, message)
}

// condition sets the condition of type `of` to True or False, as given by `is`. It removes the
// condition if `present` is false.
func (d *conditions) condition(of string, is, present bool, reason, message string) {
	if !present {
		meta.RemoveStatusCondition(&d.state.status.Conditions, of)
		return
	}
	status := metav1.ConditionFalse
	if is {
		status = metav1.ConditionTrue
	}
	old := meta.FindStatusCondition(d.state.status.Conditions, of)
	c := metav1.Condition{Type: of, Status: status, Reason: reason, Message: text.Cut(message, maxConditionMessage), ObservedGeneration: d.state.Maintenance.Generation, LastTransitionTime: metav1.NewTime(d.state.Now)}
	if old != nil && old.Status == status {
		c.LastTransitionTime = old.LastTransitionTime
	}
	meta.SetStatusCondition(&d.state.status.Conditions, c)
}

// maxConditionMessage is the maximum length of a condition's message, in bytes.
const maxConditionMessage = 1024

// ready returns the status, the reason and the message of the condition Ready. invalid is the error
// in the spec, or nil.
func (d *conditions) ready(invalid error) (ready bool, reason, message string) {
	switch {
	case invalid != nil:
		return false, tidekeeperv1.ReasonInvalidSchedule, invalid.Error()
	case d.waits != nil && d.waits.reason == tidekeeperv1.ReasonFailureLimit:
		return false, d.waits.reason, d.waits.message
	case d.state.status.Running > 0:
		message := "maintaining " + namesText(d.state.running())
		if d.waits != nil && d.waits.reason != tidekeeperv1.ReasonMaintaining && d.waits.reason != tidekeeperv1.ReasonMaxUnavailable {
			message += "; " + d.waits.message
		}
		return true, tidekeeperv1.ReasonMaintaining, message
	case d.waits != nil:
		return true, d.waits.reason, d.waits.message
	case d.state.status.Selected == 0:
		return true, tidekeeperv1.ReasonNoNodes, "no node is selected"
	case len(d.state.left()) > 0:
		return true, tidekeeperv1.ReasonMaintaining, "the drain of the next node begins"
	case d.state.status.Failed > 0:
		return true, tidekeeperv1.ReasonComplete, fmt.Sprintf("maintained: %d nodes; failed: %d", d.state.status.Done, d.state.status.Failed)
	default:
		return true, tidekeeperv1.ReasonComplete, fmt.Sprintf("maintained: %d nodes", d.state.status.Done)
	}
}

func sorted(set map[string]bool) []string { return slices.Sorted(maps.Keys(set)) }
