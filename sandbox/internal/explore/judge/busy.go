// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"fmt"
	"time"

	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/baseline"
)

// fast is the rate of requests per second, above the baseline, that counts as a hot loop.
const fast = 20

const (
	// mostPeriods is the maximum number of quiet times in which requests are counted: a busy machine
	// slows a hot loop down.
	mostPeriods = 6
	// fewRequests is the number of requests of a period, above the baseline, above which they may be a hot loop.
	fewRequests = 3
)

// Pace counts the requests of an operator in a quiet cluster, in periods as long as the quiet time of
// the baseline.
type Pace struct {
	// Quiet is the length of a period, and Before the requests in one period of the baseline.
	Quiet  time.Duration
	Before int
	// counts are the requests in each period so far.
	counts []int
}

// Add counts the requests of one more period.
func (p *Pace) Add(requests int) { p.counts = append(p.counts, requests) }

// Open reports whether another period may show a hot loop: so far there are requests in each period,
// but not as many as are counted on an idle machine.
func (p *Pace) Open() bool {
	if len(p.counts) == 0 {
		return true
	}
	return !p.Hot() && !p.slowsDown() && len(p.counts) < mostPeriods && p.counts[len(p.counts)-1]-p.Before > fewRequests
}

// Hot reports whether the requests of all periods, above the baseline, are as many as a hot loop sends in
// one, and do not become fewer.
func (p *Pace) Hot() bool {
	return p.total()-len(p.counts)*p.Before > int(fast*p.Quiet.Seconds()) && !p.slowsDown()
}

// slowsDown reports whether the operator sends less than half of the requests that it sent at first: after
// failures, an operator waits longer and longer.
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

// busy returns the problem of a pace that is a hot loop of the given requests.
func (p *Pace) busy(what string, step int) []Problem {
	if !p.Hot() {
		return nil
	}
	return []Problem{{Oracle: NotAtRest, Step: step, Lines: []string{
		fmt.Sprintf("%d %s in %s at rest, and %d undisturbed", p.total(), what, time.Duration(len(p.counts))*p.Quiet, len(p.counts)*p.Before),
	}}}
}

// Rest is the pace of the operator's reads, and of its writes without effect, at the end of a step.
type Rest struct{ Reads, Idle Pace }

// NewRest returns the pace of a step whose end in the baseline is given, where the quiet time was quiet.
func NewRest(base *baseline.BaseStep, quiet time.Duration) *Rest {
	return &Rest{Reads: Pace{Quiet: quiet, Before: base.Reads}, Idle: Pace{Quiet: quiet, Before: base.Idle}}
}

// Open reports whether the cluster is to be observed for another period.
func (r *Rest) Open() bool { return r.Reads.Open() || r.Idle.Open() }

// Add counts the requests of one more period.
func (r *Rest) Add(reads, idle int) {
	r.Reads.Add(reads)
	r.Idle.Add(idle)
}

// Busy returns the problems of an operator that reads, or writes without effect, more often in a quiet
// cluster than in the baseline.
func (r *Rest) Busy(step int) []Problem {
	return append(r.Reads.busy("reads", step), r.Idle.busy("writes that change nothing", step)...)
}
