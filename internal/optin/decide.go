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

// noVersion is a resourceVersion that no object ever has, as the store counts
// from there on. Applied with it, an object is created if there is none, and
// else the apply is refused as a conflict, so that what somebody has created a
// moment ago is not written over.
const noVersion = "1"

// action is what to do, in the words of an event.
type action string

const (
	nothing action = ""
	create  action = "Create"
	update  action = "Update"
	remove  action = "Delete"
	// complain is an event on the workload, and nothing else.
	complain action = "OptIn"
)

// decision is what to do about the ScheduledRestart of a workload.
type decision struct {
	action action
	// name is that of the ScheduledRestart that is acted on, and existing itself,
	// nil if it is to be created.
	name     string
	existing *tidekeeperv1.ScheduledRestart
	// apply is what to apply, to create or update.
	apply *applyv1.ScheduledRestartApplyConfiguration
	// look first: only if the workload is really there and not being deleted.
	look bool
	// reason and note are the event on the workload: of a complaint, else of
	// the action when it is done.
	reason, note string
}

// decide says what to do about the ScheduledRestart of a workload. It is given
// those that have the workload's names, in the order of [namesFor]; nil where
// there is none.
func decide(kind *workload.Kind, object metav1.Object, existing ...*tidekeeperv1.ScheduledRestart) decision {
	if !object.GetDeletionTimestamp().IsZero() {
		// What the workload owns goes with it. Not to be made again meanwhile.
		return decision{}
	}
	wish, err := parseWish(object.GetAnnotations())
	if err != nil {
		return decision{action: complain, reason: tidekeeperv1.EventInvalidOptIn, note: "nothing is changed: " + err.Error()}
	}
	p := find(kind, object, existing)
	if !wish.in {
		if p.origin != ours {
			return decision{}
		}
		return decision{action: remove, name: p.name, existing: p.existing, reason: tidekeeperv1.EventScheduledRestartDeleted, note: fmt.Sprintf(
			"deleted ScheduledRestart %s: the workload has no annotation %s=true any more", p.name, tidekeeperv1.OptInAnnotation)}
	}
	if p.second != nil {
		return decision{action: remove, name: p.second.Name, existing: p.second, reason: tidekeeperv1.EventScheduledRestartDeleted, note: fmt.Sprintf(
			"deleted ScheduledRestart %s: the workload has %s already", p.second.Name, p.name)}
	}
	switch p.origin {
	case dying:
		// When it is gone, the workload comes back here.
		return decision{}
	case foreign:
		return decision{action: complain, reason: tidekeeperv1.EventScheduledRestartExists, note: fmt.Sprintf(
			"ScheduledRestart %s exists already and is not from this opt-in: delete it, or take the annotation %s away", p.name, tidekeeperv1.OptInAnnotation)}
	case absent:
		next := record{Schedule: wish.schedule, TimeZone: wish.timeZone, Suspend: ptr.To(wish.schedule == nil)}
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
	next := record{Schedule: wish.schedule, TimeZone: wish.timeZone, Suspend: suspend(wish, o, last)}
	if p.origin == ours && last != nil && o.Spec.TargetRef.Equal(kind.Ref(object.GetName())) && next.isApplied(&o.Spec, last) {
		return decision{}
	}
	return decision{
		action: update, name: p.name, existing: o, look: p.origin == orphan,
		reason: tidekeeperv1.EventScheduledRestartUpdated, note: fmt.Sprintf("updated ScheduledRestart %s: %s", p.name, next.news(last)),
		// The UID too: with a version alone, an apply would create it again if
		// it was deleted meanwhile.
		apply: configuration(kind, object, p.name, next).WithUID(o.UID).WithResourceVersion(o.ResourceVersion),
	}
}

// origin is where a ScheduledRestart that has one of a workload's names comes from.
type origin int

const (
	// absent: there is none.
	absent origin = iota
	// ours: the opt-in of this workload has made it.
	ours
	// orphan: an opt-in has made it for a workload of this kind and name, which
	// was then deleted without what it owned. The one that is there now takes
	// it over, as it does its pods.
	orphan
	// dying: it is deleted already, or it is owned by a workload of this kind
	// and name that is gone, and will be collected.
	dying
	// foreign: somebody else has made it, or has made it their own by taking
	// off what says that it is from an opt-in.
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

// suspend returns what to set suspend to. It follows the annotation for the
// schedule: false when that appears, and true again when it goes. In between it
// stays as it is; if somebody has set it otherwise it is theirs, also when the
// annotation goes, and nil is returned.
func suspend(wish wish, existing *tidekeeperv1.ScheduledRestart, last *record) *bool {
	switch {
	case last == nil:
		// It cannot be told what is new. Nothing is enabled, nor suspended,
		// because a record was damaged.
		return ptr.To(existing.Spec.Suspend)
	case wish.schedule != nil && last.Schedule == nil:
		return ptr.To(false)
	case last.Suspend == nil || *last.Suspend != existing.Spec.Suspend:
		return nil
	case wish.schedule == nil && last.Schedule != nil:
		return ptr.To(true)
	default:
		return last.Suspend
	}
}

// isApplied tells whether applying r would change nothing that the annotations
// name, as the last record and the spec are. Suspend changes only together with
// the annotation for the schedule.
func (r record) isApplied(spec *tidekeeperv1.ScheduledRestartSpec, last *record) bool {
	return ptr.Equal(r.Schedule, last.Schedule) && ptr.Equal(r.TimeZone, last.TimeZone) &&
		(r.Schedule == nil || *r.Schedule == spec.Schedule) &&
		(r.TimeZone == nil || *r.TimeZone == spec.TimeZone)
}

// news tells what r sets, and what it sets no longer.
func (r record) news(last *record) string {
	var parts []string
	if r.Suspend != nil {
		parts = append(parts, map[bool]string{true: "suspended", false: "enabled"}[*r.Suspend])
	}
	tell := func(what string, value, before *string) {
		if value != nil {
			parts = append(parts, fmt.Sprintf("%s %q", what, *value))
		} else if before != nil {
			parts = append(parts, what+" no longer set by an annotation")
		}
	}
	last = cmp.Or(last, &record{})
	tell("schedule", r.Schedule, last.Schedule)
	tell("time zone", r.TimeZone, last.TimeZone)
	if len(parts) == 0 {
		return "its target is the workload"
	}
	return strings.Join(parts, ", ")
}

// configuration is what the opt-in applies: what the annotations name, and
// nothing else.
func configuration(kind *workload.Kind, object metav1.Object, name string, r record) *applyv1.ScheduledRestartApplyConfiguration {
	target := applyv1.TargetRef().WithKind(kind.Kind).WithName(object.GetName())
	if ref := kind.Ref(object.GetName()); ref.APIVersion != "" {
		target.WithAPIVersion(ref.APIVersion)
	}
	spec := applyv1.ScheduledRestartSpec().WithTargetRef(target)
	if r.Schedule != nil {
		spec.WithSchedule(*r.Schedule)
	}
	if r.TimeZone != nil {
		spec.WithTimeZone(*r.TimeZone)
	}
	if r.Suspend != nil {
		spec.WithSuspend(*r.Suspend)
	}
	return applyv1.ScheduledRestart(name, object.GetNamespace()).
		WithAnnotations(map[string]string{tidekeeperv1.AppliedAnnotation: r.String()}).
		// The deletion of the workload need not wait for it, so it does not block.
		WithOwnerReferences(applymetav1.OwnerReference().
			WithAPIVersion(kind.APIVersion()).WithKind(kind.Kind).
			WithName(object.GetName()).WithUID(object.GetUID()).WithController(true)).
		WithSpec(spec)
}
