// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package optin

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
)

// RestartMaker builds a ScheduledRestart that has the same name as the tests' workload.
type RestartMaker struct{ o tidekeeperv1.ScheduledRestart }

// MakeRestart returns a builder for a ScheduledRestart that a user has created for the workload.
func MakeRestart() *RestartMaker {
	return &RestartMaker{tidekeeperv1.ScheduledRestart{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "sr-1", ResourceVersion: "7"},
		Spec: tidekeeperv1.ScheduledRestartSpec{
			TargetRef: tidekeeperv1.TargetRef{Kind: "Deployment", Name: "web"}, Schedule: "", TimeZone: "UTC",
		},
	}}
}

// Made returns a builder for a ScheduledRestart that the opt-in has created, with the given record
// of applied values and a matching spec.
func Made(record string) *RestartMaker {
	m := MakeRestart().Record(record).Owner("apps/v1", "Deployment", "web", "web-1")
	if r := recordOn(&m.o); r != nil {
		m.Schedule(tidekeeperv1.CronExpression(ptr.Deref(r.Schedule, ""))).Zone(ptr.Deref(r.TimeZone, "UTC")).MaxPodAge(ptr.Deref(r.MaxPodAgeSeconds, 0)).Suspend(ptr.Deref(r.Suspend, false))
	}
	return m
}

// Record sets the annotation that records the last applied values.
func (m *RestartMaker) Record(record string) *RestartMaker {
	m.o.Annotations = map[string]string{tidekeeperv1.AppliedAnnotation: record}
	return m
}

// NoRecord removes all annotations, including the record of applied values.
func (m *RestartMaker) NoRecord() *RestartMaker {
	m.o.Annotations = nil
	return m
}

// Owner sets the controller owner reference.
func (m *RestartMaker) Owner(apiVersion, kind, name string, uid types.UID) *RestartMaker {
	m.o.OwnerReferences = []metav1.OwnerReference{{APIVersion: apiVersion, Kind: kind, Name: name, UID: uid, Controller: ptr.To(true)}}
	return m
}

// NoOwner removes all owner references.
func (m *RestartMaker) NoOwner() *RestartMaker {
	m.o.OwnerReferences = nil
	return m
}

// Target sets the target to a workload of a built-in kind.
func (m *RestartMaker) Target(kind, name string) *RestartMaker {
	m.o.Spec.TargetRef = tidekeeperv1.TargetRef{Kind: kind, Name: name}
	return m
}

// TargetRef sets the target to a workload of any kind.
func (m *RestartMaker) TargetRef(ref tidekeeperv1.TargetRef) *RestartMaker {
	m.o.Spec.TargetRef = ref
	return m
}

// Schedule sets the schedule in the spec.
func (m *RestartMaker) Schedule(schedule tidekeeperv1.CronExpression) *RestartMaker {
	m.o.Spec.Schedule = schedule
	return m
}

// Zone sets the time zone in the spec.
func (m *RestartMaker) Zone(zone string) *RestartMaker {
	m.o.Spec.TimeZone = zone
	return m
}

// MaxPodAge sets maxPodAgeSeconds.
func (m *RestartMaker) MaxPodAge(seconds int32) *RestartMaker {
	m.o.Spec.MaxPodAgeSeconds = seconds
	return m
}

// Suspend sets suspend.
func (m *RestartMaker) Suspend(suspend bool) *RestartMaker {
	m.o.Spec.Suspend = suspend
	return m
}

// HandEdited sets fields that users may edit and the opt-in never sets.
func (m *RestartMaker) HandEdited() *RestartMaker {
	m.o.Spec.HistoryLimit, m.o.Spec.SpreadSeconds, m.o.Labels = 3, 60, map[string]string{"a": "b"}
	return m
}

// Deleted sets the deletion timestamp of the ScheduledRestart.
func (m *RestartMaker) Deleted() *RestartMaker {
	m.o.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
	return m
}

// Obj returns a copy of the ScheduledRestart, or nil if m is nil.
func (m *RestartMaker) Obj() *tidekeeperv1.ScheduledRestart {
	if m == nil {
		return nil
	}
	return m.o.DeepCopy()
}

// decideRow is a test case of TestDecide: a workload, an existing ScheduledRestart, and the
// expected decision.
type decideRow struct {
	name     string
	workload *metav1.ObjectMeta
	existing *RestartMaker

	want action
	// event is the expected event for the workload, or "" if none is expected.
	event string
	// spec and record are the expected applied values. They are empty if nothing is to be applied.
	// spec omits the target.
	spec   map[string]any
	record string
	look   bool
	// named is the expected name of the ScheduledRestart. If it is empty, the name of the workload
	// is expected.
	named string
}
