// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"fmt"
	"time"

	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/baseline"
)

// fast is the number of requests per second, beyond the baseline's requests, above which an
// operator is in a hot loop.
const fast = 20

const (
	// mostPeriods is the maximum number of periods in which requests are counted. On a busy
	// machine, a hot loop is slower and therefore takes longer to detect.
	mostPeriods = 6
	// fewRequests is the maximum number of requests per period, in addition to the baseline's
	// requests, of an operator that is not in a hot loop.
	fewRequests = 3
)

// Pace counts an operator's requests in a quiet cluster. It counts them in periods as long as the
// baseline's quiet time.
type Pace struct {
	// Quiet is the duration of a period. Before is the baseline's number of requests per period.
	Quiet  time.Duration
	Before int
	// counts lists the number of requests of each period so far.
	counts []int
}

// Add records the number of requests in another period.
func (p *Pace) Add(requests int) { p.counts = append(p.counts, requests) }

// Open reports whether another period is needed to decide whether the operator is in a hot loop. It
// is if the operator still sends requests, but fewer than in a hot loop on an idle machine.
func (p *Pace) Open() bool {
	if len(p.counts) == 0 {
		return true
	}
	return !p.Hot() && !p.slowsDown() && len(p.counts) < mostPeriods && p.counts[len(p.counts)-1]-p.Before > fewRequests
}

// Hot reports whether the operator is in a hot loop: over all periods, it sends more requests
// beyond the baseline's than `fast` permits in a single period, and it does not slow down.
func (p *Pace) Hot() bool {
	return p.total()-len(p.counts)*p.Before > int(fast*p.Quiet.Seconds()) && !p.slowsDown()
}

// slowsDown reports whether the last period has less than half as many requests beyond the baseline
// as the first. An operator with back-off waits longer and longer after failures.
func (p *Pace) slowsDown() bool {
	return 2*(p.counts[len(p.counts)-1]-p.Before) < p.counts[0]-p.Before
}

func (p *Pace) total() int {
	total := 0
	for _, n := range p.counts {
		total += n
	}
	return total
}

// busy returns a problem if the requests form a hot loop. `what` names the kind of requests in the
// report.
func (p *Pace) busy(what string, step int) []Problem {
	if !p.Hot() {
		return nil
	}
	return []Problem{{Oracle: NotAtRest, Step: step, Lines: []string{
		fmt.Sprintf("%d %s in %s at rest, and %d undisturbed", p.total(), what, time.Duration(len(p.counts))*p.Quiet, len(p.counts)*p.Before),
	}}}
}

// Rest counts the operator's reads and its writes without effect in a quiet cluster, at the end of
// a step.
type Rest struct{ Reads, Idle Pace }

// NewRest returns an empty Rest for the step with the given baseline. `quiet` is the duration of a
// period.
func NewRest(base *baseline.BaseStep, quiet time.Duration) *Rest {
	return &Rest{Reads: Pace{Quiet: quiet, Before: base.Reads}, Idle: Pace{Quiet: quiet, Before: base.Idle}}
}

// Open reports whether another period of observation is needed to decide whether the operator is in
// a hot loop.
func (r *Rest) Open() bool { return r.Reads.Open() || r.Idle.Open() }

// Add records the numbers of requests in another period.
func (r *Rest) Add(reads, idle int) {
	r.Reads.Add(reads)
	r.Idle.Add(idle)
}

// Busy returns a problem for a hot loop of reads, and a problem for a hot loop of writes without
// effect.
func (r *Rest) Busy(step int) []Problem {
	return append(r.Reads.busy("reads", step), r.Idle.busy("writes that change nothing", step)...)
}
