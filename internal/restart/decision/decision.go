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

// Input is everything that a decision depends on.
type Input struct {
	Restart *tidekeeperv1.ScheduledRestart

	// Ticks are the ticks of the schedule, inside its windows or not, nil if it has none, and
	// Windows when restarts may be started. Invalid is why there are neither.
	Ticks   *schedule.Schedule
	Windows schedule.Windows
	Invalid error
	// Offset is the time from a tick to the start of its restart, see [Offset].
	Offset time.Duration

	// Freezes are the freezes of the namespace that have not ended, and FreezesLive says
	// that they were read from the API server and not from the cache.
	Freezes     []period.Period
	FreezesLive bool

	// After are the ScheduledRestarts that come first, and Cycle the names by which this ScheduledRestart
	// comes after itself; nil if it does not.
	After []Predecessor
	Cycle []string

	// Queried says that the manager's operator has queries, and Answer is their last answer; nil
	// if they were not asked.
	Queried bool
	Answer  *Answer

	// Target is the workload, nil if it does not exist. While a restart is in progress
	// it is the workload that is being restarted, even if the spec now names another.
	Target *workload.State
	// Unserved says that the cluster does not serve the kind of the target.
	Unserved bool
	// Unreadable is why the target cannot be used although it may exist; empty if it can.
	Unreadable string
	// Polled says that no event reports changes of the target.
	Polled bool

	// Live says that Target was read from the API server and not from the cache.
	Live bool
	// RolledOut says whether a rollout for the active tick has ever begun; nil if that
	// is unknown. A rollout that was undone leaves a revision behind.
	RolledOut *bool
	// PodStartups is how long each new pod took to become ready; nil if that is
	// unknown. Callers without a cache of pods pass an empty slice.
	PodStartups []time.Duration
	// PodAges is how old the pods of Target are; nil if that is unknown.
	PodAges *PodAges
	// Pods are the pods of Target, for a restart that evicts them; nil if they are unknown.
	Pods *Pods
	// Attempts are the evictions that this process has tried for the restart in progress.
	Attempts Attempts
	// Config is the known content that counts for onConfigChange; nil if nothing
	// counts, or there is no target.
	Config *Config
	// ChangeSettle is how long that content must not have changed before a restart for it is
	// due, so that a burst of edits is a single restart.
	ChangeSettle time.Duration
	// HasSlot says that the restart has a slot of the budget.
	HasSlot bool
	// Slots say why no slot is free.
	Slots Slots
	// FreezesShared is for how long freezes that were read from the API server count, and
	// FreezeConfirmed for how long the cache is trusted that a freeze is still in force: then the
	// decision is made again, as no event may follow when a freeze is lifted. 0 means that an event does.
	FreezesShared, FreezeConfirmed time.Duration

	// ClaimAhead is how long before it is due a tick may be claimed; 0 means not at all.
	ClaimAhead time.Duration
	// BeforeClaim is the status before this process claimed the tick of the restart in
	// progress ahead of its time. It is nil if another process has claimed it, or if this
	// process has tried to send it since: then only the target says whether it was sent.
	BeforeClaim *tidekeeperv1.ScheduledRestartStatus

	// SlotAge is how long a restart uses its slot; 0 means until it ends.
	SlotAge time.Duration
	// Sent is the tick that this process sent last. The workload says so too, but
	// kubectl rollout undo reverts that together with the pod template.
	Sent time.Time

	// Refused is why the API server refused to restart the target when this process tried to
	// send the tick of the restart in progress last; empty if it has not.
	Refused string

	// LeadingSince is when this process began to decide.
	LeadingSince time.Time
	Now          time.Time

	// Brief leaves out the messages for people, which take as long as all the rest of a decision:
	// of the conditions there is only Ready, without a message, and the history stays as it was.
	// The caller puts the records on top of it, see [Keep].
	Brief bool
}

// Need is a fact that is only found out if a decision depends on it: it costs a request to
// the API server, a look at many pods, or a slot of the budget.
type Need int

const (
	// NeedNothing means that the decision is complete.
	NeedNothing Need = iota
	// NeedLiveTarget asks for Input.Target as the API server has it, as the cache may
	// be stale.
	NeedLiveTarget
	// NeedRolledOut asks for Input.RolledOut.
	NeedRolledOut
	// NeedPodStartups asks for Input.PodStartups.
	NeedPodStartups
	// NeedPodAges asks for Input.PodAges.
	NeedPodAges
	// NeedLivePodAges asks for Input.PodAges as the API server has them.
	NeedLivePodAges
	// NeedLiveConfig asks for Input.Config as the API server has it.
	NeedLiveConfig
	// NeedSlot asks for Input.HasSlot. If there is no slot, the decision is complete:
	// the restart waits.
	NeedSlot
	// NeedSpareSlot asks for Input.HasSlot for a tick that is not due yet. If there is no
	// slot that no other restart waits for, the decision is complete: the tick is not claimed.
	NeedSpareSlot
	// NeedLiveFreezes asks for Input.Freezes as the API server has them, as the last thing
	// before a tick is sent: the cache may not show a freeze that has begun. Output.Due says when
	// they must have been read at the earliest.
	NeedLiveFreezes
	// NeedPods asks for Input.Pods.
	NeedPods
	// NeedAnswer asks for Input.Answer, of now, before a tick is sent. It may take seconds: until
	// then a slot that the restart has is kept, and nothing of the output is carried out.
	NeedAnswer
)

// Output says how to proceed: first write the status, if it differs, then send the tick. If it does
// not differ, the API server must be asked first whether the ScheduledRestart has changed,
// which a write of the status would have found out.
type Output struct {
	// Needs is the fact that the decision depends on. With it, decide again. All else
	// counts only if nothing is needed, or if no slot is free.
	Needs Need

	Status tidekeeperv1.ScheduledRestartStatus
	// Unchanged says that Status is known to be that of the input, so that they need not be
	// compared.
	Unchanged bool

	// Send is the tick to send to the target; zero means none. Due is when its restart
	// was due.
	Send, Due time.Time
	// Started is the tick for which a restart by eviction is started by the write of Status,
	// zero if none is. It has no tick to send.
	Started time.Time
	// Evict are the pods to evict now.
	Evict []evict.Pod
	// BeforeClaim is the status without the claim, if the tick of the restart in progress was
	// claimed just now and is not due yet.
	BeforeClaim *tidekeeperv1.ScheduledRestartStatus

	// Records are the ticks that were decided just now, for events and metrics.
	Records []tidekeeperv1.RestartRecord

	// WaitingSince is the time since when a restart that needs a slot has waited.
	WaitingSince time.Time
	// Outlived says that the restart continues, but no longer uses a slot.
	Outlived bool

	// Wake is when to decide again if nothing happens before; zero means never.
	Wake time.Time
}
