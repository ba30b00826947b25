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

// Input has all facts that a decision depends on.
type Input struct {
	Restart *tidekeeperv1.ScheduledRestart

	// Ticks has the ticks of the schedule, inside or outside of the windows, nil without a schedule. Windows
	// has the periods in which restarts may start. Invalid is the error if either cannot be parsed.
	Ticks   *schedule.Schedule
	Windows schedule.Windows
	Invalid error
	// Offset is the time from a tick to the start of its restart, see [Offset].
	Offset time.Duration

	// Freezes are the freezes of the namespace that have not ended. FreezesLive is set if they were read from
	// the API server and not from the cache.
	Freezes     []period.Period
	FreezesLive bool

	// After has the ScheduledRestarts that come first. Cycle has the names on a cycle through this
	// ScheduledRestart; nil if there is no cycle.
	After []Predecessor
	Cycle []string

	// Queried is set if the administrator has configured queries. Answer is their last answer; nil if they
	// were not asked.
	Queried bool
	Answer  *Answer

	// Target is the workload, nil if it does not exist. While a restart is in progress
	// it is the workload that is being restarted, even if the spec now names another.
	Target *workload.State
	// Unserved is set if the cluster does not serve the kind of the target.
	Unserved bool
	// Unreadable explains why the target cannot be used although it may exist; empty if it can.
	Unreadable string
	// Polled is set if changes of the target cause no events.
	Polled bool

	// Live is set if Target was read from the API server and not from the cache.
	Live bool
	// RolledOut says whether a rollout for the active tick has ever begun; nil if unknown. A rollout that was
	// undone leaves a revision behind.
	RolledOut *bool
	// PodStartups has the time that each new pod took to become ready; nil if unknown. Callers without a
	// cache of pods pass an empty slice.
	PodStartups []time.Duration
	// PodAges has the ages of the pods of Target; nil if unknown.
	PodAges *PodAges
	// Pods has the pods of Target, for a restart by eviction; nil if unknown.
	Pods *Pods
	// Attempts describes the evictions that this process has tried for the restart in progress.
	Attempts Attempts
	// Config is the content that onConfigChange covers; nil if it covers none, or without a target.
	Config *Config
	// ChangeSettle is the time for which that content must not have changed before a restart for the change
	// becomes due, so that a burst of edits leads to a single restart.
	ChangeSettle time.Duration
	// HasSlot is set if the restart has a slot of the budget.
	HasSlot bool
	// Slots describes why no slot is free.
	Slots Slots
	// FreezesShared is the time for which freezes that were read from the API server are used.
	// FreezeConfirmed is the time for which the cache is trusted that a freeze is still in force: after that
	// the decision is repeated, as no event may follow when a freeze is lifted. 0 means that an event
	// follows.
	FreezesShared, FreezeConfirmed time.Duration

	// ClaimAhead is the time before a tick at which it may be claimed; 0 means never.
	ClaimAhead time.Duration
	// BeforeClaim is the status from before this process claimed the tick of the restart in progress early.
	// It is nil if another process made the claim, or if this process has tried to send the tick since: then
	// only the target shows whether the tick was sent.
	BeforeClaim *tidekeeperv1.ScheduledRestartStatus

	// SlotAge is the maximum time for which a restart uses its slot; 0 means until it ends.
	SlotAge time.Duration
	// Sent is the last tick that this process sent. The workload has it as an annotation, too, but kubectl
	// rollout undo reverts that together with the pod template.
	Sent time.Time

	// Refused is the API server's reason for refusing the last attempt of this process to send the tick of
	// the restart in progress; empty if it was not refused.
	Refused string

	// LeadingSince is the time at which this process became the leader.
	LeadingSince time.Time
	Now          time.Time

	// Brief omits the messages for users, which take as long as the rest of a decision: the only condition is
	// Ready, without a message, and the history is not updated. The caller adds the records with [Keep].
	Brief bool
}

// Need is a fact that is looked up only if a decision depends on it, as it costs a request to the API server,
// a look at many pods, or a slot of the budget.
type Need int

const (
	// NeedNothing means that the decision is complete.
	NeedNothing Need = iota
	// NeedLiveTarget asks for Input.Target from the API server, as the cache may be stale.
	NeedLiveTarget
	// NeedRolledOut asks for Input.RolledOut.
	NeedRolledOut
	// NeedPodStartups asks for Input.PodStartups.
	NeedPodStartups
	// NeedPodAges asks for Input.PodAges.
	NeedPodAges
	// NeedLivePodAges asks for Input.PodAges from the API server.
	NeedLivePodAges
	// NeedLiveConfig asks for Input.Config from the API server.
	NeedLiveConfig
	// NeedSlot asks for Input.HasSlot. Without a slot the decision is complete: the restart waits.
	NeedSlot
	// NeedSpareSlot asks for Input.HasSlot for a tick that is not due yet. Without a slot that no other
	// restart waits for, the decision is complete: the tick is not claimed.
	NeedSpareSlot
	// NeedLiveFreezes asks for Input.Freezes from the API server, as the last step before a tick is sent: the
	// cache may not show a freeze that has begun. The freezes must not be older than Output.Due.
	NeedLiveFreezes
	// NeedPods asks for Input.Pods.
	NeedPods
	// NeedAnswer asks for a current Input.Answer before a tick is sent. The answer may take seconds: until
	// then the restart keeps its slot, and the output is not carried out.
	NeedAnswer
)

// Output is the result of a decision: write the status first, if it differs, then send the tick. If the
// status does not differ, the caller must first ask the API server whether the ScheduledRestart has changed,
// which a status write would have revealed.
type Output struct {
	// Needs is the fact that the decision depends on: decide again with it. The other fields count only if no
	// fact is needed, or if no slot is free.
	Needs Need

	Status tidekeeperv1.ScheduledRestartStatus
	// Unchanged is set if Status is known to equal the status of the input, so that a comparison is not
	// necessary.
	Unchanged bool

	// Send is the tick to send to the target; zero means none. Due is the time at which its restart was due.
	Send, Due time.Time
	// Started is the tick of a restart by eviction that the write of Status starts; zero if there is none. No
	// tick is sent for it.
	Started time.Time
	// Evict has the pods to evict now.
	Evict []evict.Pod
	// BeforeClaim is the status without the claim, if the tick of the restart in progress was just claimed
	// early.
	BeforeClaim *tidekeeperv1.ScheduledRestartStatus

	// Records has the ticks that were just decided, for events and metrics.
	Records []tidekeeperv1.RestartRecord

	// WaitingSince is the time since which a restart has waited for a slot.
	WaitingSince time.Time
	// Outlived is set if the restart continues without a slot.
	Outlived bool

	// Wake is the time of the next decision if no event happens before; zero means never.
	Wake time.Time
}
