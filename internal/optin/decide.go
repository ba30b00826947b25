// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package optin

import (
	"cmp"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	applymetav1 "k8s.io/client-go/applyconfigurations/meta/v1"
	"k8s.io/utils/ptr"

	applyv1 "tidekeeper.dev/tidekeeper/api/applyconfiguration/api/v1"
	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/workload"
)

// noVersion is a resourceVersion that no ScheduledRestart can have, because it is the revision of
// an empty etcd. An apply with this version creates the object, or fails with a conflict if the
// object exists. It therefore never overwrites an object that another client has just created.
const noVersion = "1"

// action is the kind of write that a decision requires. It is also the action field of the recorded
// event.
type action string

const (
	nothing action = ""
	create  action = "Create"
	update  action = "Update"
	remove  action = "Delete"
	// complain means that nothing is written except an event about the workload.
	complain action = "OptIn"
)

// decision is the result of [decide]: the change that a workload's ScheduledRestart needs. The zero
// value means that no change is needed.
type decision struct {
	action action
	// name is the name of the ScheduledRestart to write. existing is its current state, or nil if
	// it has to be created.
	name     string
	existing *tidekeeperv1.ScheduledRestart
	// apply is the configuration for the server-side apply. It is set only for the actions create
	// and update.
	apply *applyv1.ScheduledRestartApplyConfiguration
	// look means that the reconciler must first confirm with the API server that the workload
	// exists and is not being deleted.
	look bool
	// reason and note describe the event to record for the workload after the action. If the action
	// is complain, only the event is written.
	reason, note string
}

// decide returns the action to take for a workload's ScheduledRestart. existing lists the
// ScheduledRestarts that have the names returned by [namesFor], in the same order, with nil for a
// name that does not exist.
func decide(kind *workload.Kind, object metav1.Object, existing ...*tidekeeperv1.ScheduledRestart) decision {
	if !object.GetDeletionTimestamp().IsZero() {
		// The workload is being deleted, so the garbage collector will delete the workload's
		// ScheduledRestart. It must not be created again in the meantime.
		return decision{}
	}
	wish, err := parseWish(object.GetAnnotations())
	if err != nil {
		return decision{action: complain, reason: tidekeeperv1.EventInvalidOptIn, note: "nothing is changed: " + err.Error()}
	}
	p := find(kind, object, existing)
	if wish.off && p.origin != ours {
		return decision{}
	}
	if !wish.in && !wish.off {
		if p.origin != ours {
			return decision{}
		}
		return decision{action: remove, name: p.name, existing: p.existing, reason: tidekeeperv1.EventScheduledRestartDeleted, note: fmt.Sprintf(
			"deleted ScheduledRestart %s: the workload no longer has the annotation %s", p.name, tidekeeperv1.OptInAnnotation)}
	}
	if p.second != nil {
		return decision{action: remove, name: p.second.Name, existing: p.second, reason: tidekeeperv1.EventScheduledRestartDeleted, note: fmt.Sprintf(
			"deleted ScheduledRestart %s: the workload has %s already", p.second.Name, p.name)}
	}
	switch p.origin {
	case dying:
		// The completed deletion of the ScheduledRestart will trigger the next reconcile of the
		// workload.
		return decision{}
	case foreign:
		return decision{action: complain, reason: tidekeeperv1.EventScheduledRestartExists, note: fmt.Sprintf(
			"ScheduledRestart %s exists already and is not from this opt-in: delete it, or remove the annotation %s", p.name, tidekeeperv1.OptInAnnotation)}
	case absent:
		next := record{Schedule: wish.schedule, TimeZone: wish.timeZone, MaxPodAgeSeconds: wish.maxPodAgeSeconds, Suspend: ptr.To(!wish.triggers())}
		taken := ""
		if p.name != object.GetName() {
			taken = ", as the name " + object.GetName() + " is taken"
		}
		return decision{
			action: create, name: p.name, look: true, reason: tidekeeperv1.EventScheduledRestartCreated, note: fmt.Sprintf("created ScheduledRestart %s%s: %s", p.name, taken, next.news(nil)),
			apply: configuration(kind, object, p.name, next).WithResourceVersion(noVersion),
		}
	}

	o := p.existing
	last := recordOn(o)
	next := record{Schedule: wish.schedule, TimeZone: wish.timeZone, MaxPodAgeSeconds: wish.maxPodAgeSeconds, Suspend: suspend(wish, o, last)}
	if wish.off {
		next = switchedOff(o, last)
	}
	if p.origin == ours && last != nil && o.Spec.TargetRef.Equal(kind.Ref(object.GetName())) && next.isApplied(&o.Spec, last) {
		return decision{}
	}
	note := fmt.Sprintf("updated ScheduledRestart %s: %s", p.name, next.news(last))
	if next.Schedule == nil && next.MaxPodAgeSeconds != nil && (last == nil || last.Schedule == nil && last.MaxPodAgeSeconds == nil) && o.Spec.Schedule != "" {
		note += fmt.Sprintf("; its schedule %q stays, and restarts the workload as well", o.Spec.Schedule)
	}
	return decision{
		action: update, name: p.name, existing: o, look: p.origin == orphan,
		reason: tidekeeperv1.EventScheduledRestartUpdated, note: note,
		// The UID prevents the apply from creating the object again if it has been deleted in the
		// meantime. A resourceVersion alone does not prevent this.
		apply: configuration(kind, object, p.name, next).WithUID(o.UID).WithResourceVersion(o.ResourceVersion),
	}
}

// origin describes how an existing ScheduledRestart relates to the workload.
type origin int

const (
	// absent means that the ScheduledRestart does not exist.
	absent origin = iota
	// ours means that the opt-in of this workload created the ScheduledRestart.
	ours
	// orphan means that the ScheduledRestart was created for an earlier workload with the same kind
	// and name, whose deletion orphaned its dependents. The current workload adopts it, as a
	// ReplicaSet adopts orphaned pods.
	orphan
	// dying means that the ScheduledRestart is being deleted, or that it will be garbage-collected
	// because its owner is an earlier workload with the same kind and name.
	dying
	// foreign means that another client or another workload's opt-in created the ScheduledRestart,
	// or that a user took it over by removing the annotation that marks it as created by an opt-in.
	foreign
)

func originOf(kind *workload.Kind, object metav1.Object, existing *tidekeeperv1.ScheduledRestart) origin {
	if existing == nil {
		return absent
	}
	if !existing.DeletionTimestamp.IsZero() {
		return dying
	}
	if _, made := existing.Annotations[tidekeeperv1.AppliedAnnotation]; !made {
		return foreign
	}
	switch owner := metav1.GetControllerOf(existing); {
	case owner == nil && existing.Spec.TargetRef.Equal(kind.Ref(object.GetName())):
		return orphan
	case owner == nil || !kind.Is(owner.APIVersion, owner.Kind) || owner.Name != object.GetName():
		return foreign
	case owner.UID != object.GetUID():
		return dying
	}
	return ours
}

// suspend returns the value to apply to spec.suspend. It returns nil if another client has changed
// the field, which then belongs to that client even after the annotations are removed. The value
// becomes false when the first annotation for a schedule or a maximum pod age is added, and true
// when the last of them is removed. In between, it does not change.
//
// When the opt-in is switched on again after it was switched off, spec.suspend gets the value that
// it had before.
func suspend(wish wish, existing *tidekeeperv1.ScheduledRestart, last *record) *bool {
	switch {
	case last == nil:
		// Without a record of the last applied values, changes by other clients cannot be detected.
		// A damaged record must not enable or suspend anything.
		return ptr.To(existing.Spec.Suspend)
	case wish.triggers() && !last.triggers():
		return ptr.To(false)
	case last.Suspend == nil || *last.Suspend != existing.Spec.Suspend:
		return nil
	case !wish.triggers() && last.triggers():
		return ptr.To(true)
	case last.SuspendAfter != nil:
		return last.SuspendAfter
	default:
		return last.Suspend
	}
}

// switchedOff returns the record to apply while the opt-in is switched off: the last applied
// values, with suspend set to true. Another client may still set suspend to false.
func switchedOff(existing *tidekeeperv1.ScheduledRestart, last *record) record {
	next := record{TimeZone: &existing.Spec.TimeZone}
	if existing.Spec.Schedule != "" {
		next.Schedule = ptr.To(string(existing.Spec.Schedule))
	}
	if existing.Spec.MaxPodAgeSeconds != 0 {
		next.MaxPodAgeSeconds = &existing.Spec.MaxPodAgeSeconds
	}
	if last != nil {
		next.Schedule, next.TimeZone, next.MaxPodAgeSeconds = last.Schedule, last.TimeZone, last.MaxPodAgeSeconds
	}
	if last == nil || last.SuspendAfter == nil {
		next.Suspend, next.SuspendAfter = ptr.To(true), &existing.Spec.Suspend
		return next
	}
	next.SuspendAfter = last.SuspendAfter
	if last.Suspend != nil && *last.Suspend == existing.Spec.Suspend {
		next.Suspend = last.Suspend
	}
	return next
}

// isApplied reports whether r has already been applied: it equals the last applied record, and the
// ScheduledRestart still has its values. Suspend is not compared, because it changes only together
// with the annotations for the schedule and the maximum pod age, or when the opt-in is switched off
// or on.
func (r record) isApplied(spec *tidekeeperv1.ScheduledRestartSpec, last *record) bool {
	return ptr.Equal(r.Schedule, last.Schedule) && ptr.Equal(r.TimeZone, last.TimeZone) && ptr.Equal(r.SuspendAfter, last.SuspendAfter) &&
		ptr.Equal(r.MaxPodAgeSeconds, last.MaxPodAgeSeconds) &&
		(r.Schedule == nil || *r.Schedule == string(spec.Schedule)) &&
		(r.TimeZone == nil || *r.TimeZone == spec.TimeZone) &&
		(r.MaxPodAgeSeconds == nil || *r.MaxPodAgeSeconds == spec.MaxPodAgeSeconds)
}

// news describes, for the note of an event, how the record r differs from the last applied record:
// the fields that r sets, and the fields that only the last record set.
func (r record) news(last *record) string {
	var parts []string
	if r.Suspend != nil {
		parts = append(parts, map[bool]string{true: "suspended", false: "enabled"}[*r.Suspend])
	}
	add := func(what string, value, before *string) {
		if value != nil {
			parts = append(parts, fmt.Sprintf("%s %q", what, *value))
		} else if before != nil {
			parts = append(parts, what+" no longer set by an annotation")
		}
	}
	last = cmp.Or(last, &record{})
	add("schedule", r.Schedule, last.Schedule)
	add("time zone", r.TimeZone, last.TimeZone)
	if r.MaxPodAgeSeconds != nil {
		parts = append(parts, fmt.Sprintf("maxPodAgeSeconds %d", *r.MaxPodAgeSeconds))
	} else if last.MaxPodAgeSeconds != nil {
		parts = append(parts, "maxPodAgeSeconds no longer set by an annotation")
	}
	if len(parts) == 0 {
		return "its target is the workload"
	}
	return strings.Join(parts, ", ")
}

// configuration returns the apply configuration for r. It contains only the fields that belong to
// the opt-in.
func configuration(kind *workload.Kind, object metav1.Object, name string, r record) *applyv1.ScheduledRestartApplyConfiguration {
	target := applyv1.TargetRef().WithKind(kind.Kind).WithName(object.GetName())
	if ref := kind.Ref(object.GetName()); ref.APIVersion != "" {
		target.WithAPIVersion(ref.APIVersion)
	}
	spec := applyv1.ScheduledRestartSpec().WithTargetRef(target)
	if r.Schedule != nil {
		spec.WithSchedule(tidekeeperv1.CronExpression(*r.Schedule))
	}
	if r.TimeZone != nil {
		spec.WithTimeZone(*r.TimeZone)
	}
	if r.MaxPodAgeSeconds != nil {
		spec.WithMaxPodAgeSeconds(*r.MaxPodAgeSeconds)
	}
	if r.Suspend != nil {
		spec.WithSuspend(*r.Suspend)
	}
	return applyv1.ScheduledRestart(name, object.GetNamespace()).
		WithAnnotations(map[string]string{tidekeeperv1.AppliedAnnotation: r.String()}).
		// blockOwnerDeletion is not set, because the deletion of a workload need not wait for its
		// ScheduledRestart.
		WithOwnerReferences(applymetav1.OwnerReference().
			WithAPIVersion(kind.APIVersion()).WithKind(kind.Kind).
			WithName(object.GetName()).WithUID(object.GetUID()).WithController(true)).
		WithSpec(spec)
}
