// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"time"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/freeze/period"
	"tidekeeper.dev/tidekeeper/internal/restart/evict"
	"tidekeeper.dev/tidekeeper/internal/schedule"
	"tidekeeper.dev/tidekeeper/internal/workload"
)

// Input holds all facts that a decision about a ScheduledRestart depends on.
type Input struct {
	Restart *tidekeeperv1.ScheduledRestart

	// Ticks computes the ticks of the schedule, regardless of the windows; nil without a schedule.
	// Windows lists the windows in which restarts may start. Invalid is the error if the schedule
	// or the windows cannot be parsed.
	Ticks   *schedule.Schedule
	Windows schedule.Windows
	Invalid error
	// Offset is the time from a tick (a scheduled time) to the start of its restart. See [Offset].
	Offset time.Duration

	// Freezes lists the freezes that apply to the namespace and have not ended. FreezesLive is true
	// if they were read from the API server instead of the cache.
	Freezes     []period.Period
	FreezesLive bool

	// After lists the predecessors, the ScheduledRestarts in spec.after. Cycle lists the names on a
	// cycle of predecessors that contains this ScheduledRestart; nil if there is no such cycle.
	After []Predecessor
	Cycle []string

	// Queried is true if the administrator has configured Prometheus queries that can keep restarts
	// from starting. Answer is the last combined answer of these queries; nil if they have not been
	// run for this restart.
	Queried bool
	Answer  *Answer

	// Target is the target workload; nil if it does not exist. While a restart is in progress, it
	// is the workload that is being restarted, even if the spec now names another workload.
	Target *workload.State
	// Unserved is true if the cluster does not serve the kind of the target.
	Unserved bool
	// Unreadable explains why the target cannot be used although it may exist. It is "" if the
	// target can be used.
	Unreadable string
	// Polled is true if changes of the target cause no events, so that it must be read again at
	// intervals.
	Polled bool

	// Live is true if Target was read from the API server instead of the cache.
	Live bool
	// RolledOut reports whether a rollout for the tick (the scheduled time) of the restart in
	// progress has ever begun; nil if unknown. A rollout that was undone also counts, since it
	// leaves a revision behind.
	RolledOut *bool
	// PodStartups lists the startup time of each new pod; nil if unknown. Callers without a cache
	// of pods pass an empty slice.
	PodStartups []time.Duration
	// PodAges describes the ages of the target's pods; nil if unknown.
	PodAges *PodAges
	// Pods lists the target's pods for a restart by eviction; nil if unknown.
	Pods *Pods
	// Attempts describes this process's eviction attempts for the restart in progress.
	Attempts Attempts
	// Config describes the ConfigMaps and Secrets whose changes trigger restarts; nil if
	// spec.onConfigChange is not set, or if the target does not exist.
	Config *Config
	// ChangeSettle is the time for which Config must remain unchanged before a restart for a change
	// becomes due. Several edits in quick succession then lead to a single restart.
	ChangeSettle time.Duration
	// HasSlot is true if the restart has a slot of the restart budget.
	HasSlot bool
	// Slots describes the limits of the restart budget, for messages about a restart without a
	// slot.
	Slots Slots
	// FreezesShared is the time for which freezes that were read from the API server are reused.
	// FreezeConfirmed is the time for which a cached freeze is trusted to be still in force. After
	// these times the decision is repeated, since the lifting of a freeze may cause no event. 0
	// means that there is always an event.
	FreezesShared, FreezeConfirmed time.Duration

	// ClaimAhead is the time before a tick is due at which the tick may be claimed, that is,
	// written to status.active; 0 means never.
	ClaimAhead time.Duration
	// BeforeClaim is the status before this process wrote the restart in progress to it, in advance
	// of the due time. It is nil if another process wrote it, or if this process has since tried to
	// send the tick. In these cases, only the target shows whether the tick was sent.
	BeforeClaim *tidekeeperv1.ScheduledRestartStatus

	// SlotAge is the maximum time for which a restart holds its slot; 0 means until the restart
	// ends.
	SlotAge time.Duration
	// Sent is the last tick (scheduled time) that this process sent to the target; zero if none.
	// The target also has it as an annotation, but kubectl rollout undo reverts the annotation
	// together with the pod template.
	Sent time.Time

	// SendFailure describes this process's last attempt to send the tick (the scheduled time) of
	// the restart in progress to its target. Its zero value means that the attempt did not fail, or
	// that there was none.
	SendFailure SendFailure

	// LeadingSince is the time at which this process became the leader.
	LeadingSince time.Time
	Now          time.Time

	// Brief omits the messages for users, which take as long to compute as the rest of a decision.
	// Ready is then the only condition and has no message, and the history is not updated; the
	// caller adds the new history entries with [Keep].
	Brief bool
}

// Need is a fact that the caller provides only if a decision depends on it. Such a fact costs a
// request to the API server, the processing of many pods, or a slot of the restart budget.
type Need int

const (
	// NeedNothing means that the decision is complete.
	NeedNothing Need = iota
	// NeedLiveTarget requests Input.Target from the API server, because the cache may be stale.
	NeedLiveTarget
	// NeedRolledOut requests Input.RolledOut, which requires a list of revisions.
	NeedRolledOut
	// NeedPodStartups requests Input.PodStartups when a restart succeeds.
	NeedPodStartups
	// NeedPodAges requests Input.PodAges, which may be read from the cache.
	NeedPodAges
	// NeedLivePodAges requests Input.PodAges from the API server.
	NeedLivePodAges
	// NeedLiveConfig requests Input.Config from the API server.
	NeedLiveConfig
	// NeedSlot requests Input.HasSlot. If no slot is free, the decision is complete and the restart
	// waits.
	NeedSlot
	// NeedSpareSlot requests Input.HasSlot for a tick that is not due yet. If no slot is free, or
	// if other restarts wait for slots, the decision is complete and the tick is not claimed.
	NeedSpareSlot
	// NeedLiveFreezes requests Input.Freezes from the API server, since the cache may not show a
	// freeze that has just begun. This is the last step before a tick is sent. The freezes must
	// have been read at Output.Due or later.
	NeedLiveFreezes
	// NeedPods requests Input.Pods from the API server.
	NeedPods
	// NeedAnswer requests a current Input.Answer before a tick is sent. As the answer may take
	// seconds, the output is not carried out, and the restart keeps its slot in the meantime.
	NeedAnswer
)

// Output is the result of a decision. The caller first writes the status if it has changed, then
// sends the tick. If the status has not changed, the caller must first check on the API server
// whether the ScheduledRestart was edited, which a status write would have revealed by a conflict.
type Output struct {
	// Needs is the next fact that the decision needs. The caller must provide it and decide again.
	// The other fields are valid only if Needs is NeedNothing, or if a slot was requested and none
	// is free.
	Needs Need

	Status tidekeeperv1.ScheduledRestartStatus
	// Unchanged is true if Status is known to equal the status of the input, so that the caller
	// need not compare them.
	Unchanged bool

	// Send is the tick (the scheduled time of the restart) to send to the target; zero means none.
	// Due is the time at which its restart was due.
	Send, Due time.Time
	// Started is the tick (the scheduled time) of a restart by eviction that starts when Status is
	// written; zero if no such restart starts. For such a restart, nothing is sent to the target.
	Started time.Time
	// Evict lists the pods to evict now.
	Evict []evict.Pod
	// BeforeClaim is the status that would result if the restart in progress were not written to it
	// before the due time; nil if this decision writes no restart before its due time.
	BeforeClaim *tidekeeperv1.ScheduledRestartStatus

	// Records lists the history entries that this decision adds, for events and metrics.
	Records []tidekeeperv1.RestartRecord

	// WaitingSince is the time since which a restart has waited for a slot; zero if no restart
	// waits.
	WaitingSince time.Time
	// Outlived is true if the restart in progress has held its slot for Input.SlotAge, and
	// continues without a slot.
	Outlived bool

	// Wake is the time of the next decision, unless an event causes an earlier one; zero means
	// never.
	Wake time.Time
}
