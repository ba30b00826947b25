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

// RestartMaker builds a ScheduledRestart with the name of the workload.
type RestartMaker struct{ o tidekeeperv1.ScheduledRestart }

// MakeRestart returns a maker for one that a user has created for the workload.
func MakeRestart() *RestartMaker {
	return &RestartMaker{tidekeeperv1.ScheduledRestart{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "sr-1", ResourceVersion: "7"},
		Spec: tidekeeperv1.ScheduledRestartSpec{
			TargetRef: tidekeeperv1.TargetRef{Kind: "Deployment", Name: "web"}, Schedule: "", TimeZone: "UTC",
		},
	}}
}

// Made returns a maker for one that the opt-in of the workload has created, with this
// record, and with a spec that matches the record.
func Made(record string) *RestartMaker {
	m := MakeRestart().Record(record).Owner("apps/v1", "Deployment", "web", "web-1")
	if r := recordOn(&m.o); r != nil {
		m.Schedule(tidekeeperv1.CronExpression(ptr.Deref(r.Schedule, ""))).Zone(ptr.Deref(r.TimeZone, "UTC")).MaxPodAge(ptr.Deref(r.MaxPodAgeSeconds, 0)).Suspend(ptr.Deref(r.Suspend, false))
	}
	return m
}

// Record sets the annotation with the record.
func (m *RestartMaker) Record(record string) *RestartMaker {
	m.o.Annotations = map[string]string{tidekeeperv1.AppliedAnnotation: record}
	return m
}

// NoRecord removes the annotation with the record.
func (m *RestartMaker) NoRecord() *RestartMaker {
	m.o.Annotations = nil
	return m
}

// Owner sets its controller owner reference.
func (m *RestartMaker) Owner(apiVersion, kind, name string, uid types.UID) *RestartMaker {
	m.o.OwnerReferences = []metav1.OwnerReference{{APIVersion: apiVersion, Kind: kind, Name: name, UID: uid, Controller: ptr.To(true)}}
	return m
}

// NoOwner removes all owner references.
func (m *RestartMaker) NoOwner() *RestartMaker {
	m.o.OwnerReferences = nil
	return m
}

// Target sets the target.
func (m *RestartMaker) Target(kind, name string) *RestartMaker {
	m.o.Spec.TargetRef = tidekeeperv1.TargetRef{Kind: kind, Name: name}
	return m
}

// TargetRef sets the target, of any kind.
func (m *RestartMaker) TargetRef(ref tidekeeperv1.TargetRef) *RestartMaker {
	m.o.Spec.TargetRef = ref
	return m
}

// Schedule sets the schedule.
func (m *RestartMaker) Schedule(schedule tidekeeperv1.CronExpression) *RestartMaker {
	m.o.Spec.Schedule = schedule
	return m
}

// Zone sets the time zone.
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

// HandEdited sets fields that no annotation names.
func (m *RestartMaker) HandEdited() *RestartMaker {
	m.o.Spec.HistoryLimit, m.o.Spec.SpreadSeconds, m.o.Labels = 3, 60, map[string]string{"a": "b"}
	return m
}

// Deleted sets its deletion timestamp.
func (m *RestartMaker) Deleted() *RestartMaker {
	m.o.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
	return m
}

// Obj returns the ScheduledRestart.
func (m *RestartMaker) Obj() *tidekeeperv1.ScheduledRestart {
	if m == nil {
		return nil
	}
	return m.o.DeepCopy()
}

// decideRow is a row of the table of TestDecide: what is done for this workload and
// this ScheduledRestart.
type decideRow struct {
	name     string
	workload *metav1.ObjectMeta
	existing *RestartMaker

	want action
	// event is the event on the workload, "" for none.
	event string
	// spec (without the target) and record are what is applied, if anything is.
	spec   map[string]any
	record string
	look   bool
	// named is the name of the ScheduledRestart if it is not that of the workload.
	named string
}
