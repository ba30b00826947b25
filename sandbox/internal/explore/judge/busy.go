// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"fmt"
	"time"

	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/baseline"
)

// fast is the number of requests per second that counts as a hot loop, in which an operator sends
// requests continuously. Requests that also occur in the baseline are not included.
const fast = 20

const (
	// mostPeriods is the maximum number of periods in which an operator's requests are counted. On
	// a busy machine, an operator in a hot loop sends fewer requests per period, so that more
	// periods are needed to detect the loop.
	mostPeriods = 6
	// fewRequests is the number of requests per period, in addition to the baseline's requests, up
	// to which an operator is certainly not in a hot loop.
	fewRequests = 3
)

// Pace counts an operator's requests while the cluster is quiet, in consecutive periods, to detect
// a hot loop (continuous requests).
type Pace struct {
	// Quiet is the duration of a period. Before is the number of requests per period in the
	// baseline.
	Quiet  time.Duration
	Before int
	// counts lists the number of requests of each period so far.
	counts []int
}

// Add records the number of requests in another period.
func (p *Pace) Add(requests int) { p.counts = append(p.counts, requests) }

// Open reports whether the requests must be counted in another period to decide whether the
// operator is in a hot loop (continuous requests). This is the case if the operator still sends
// requests, but too few for a hot loop on an idle machine.
func (p *Pace) Open() bool {
	if len(p.counts) == 0 {
		return true
	}
	return !p.Hot() && !p.slowsDown() && len(p.counts) < mostPeriods && p.counts[len(p.counts)-1]-p.Before > fewRequests
}

// Hot reports whether the operator is in a hot loop (continuous requests). This is the case if it
// does not slow down, and if all periods together contain more additional requests than `fast`
// permits in a single period. Additional requests are requests beyond the baseline's number.
func (p *Pace) Hot() bool {
	return p.total()-len(p.counts)*p.Before > int(fast*p.Quiet.Seconds()) && !p.slowsDown()
}

// slowsDown reports whether the operator backs off, that is, waits longer and longer between
// requests. In this case, the last period has less than half as many requests beyond the baseline's
// number as the first period.
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

// busy returns a problem if the counted requests form a hot loop, and nil otherwise. `what`
// describes these requests in the report, such as "reads".
func (p *Pace) busy(what string, step int) []Problem {
	if !p.Hot() {
		return nil
	}
	return []Problem{{Oracle: NotAtRest, Step: step, Lines: []string{
		fmt.Sprintf("%d %s in %s at rest, and %d undisturbed", p.total(), what, time.Duration(len(p.counts))*p.Quiet, len(p.counts)*p.Before),
	}}}
}

// Rest counts the operator's reads, and its writes without effect (Idle), while the cluster is
// quiet at the end of a step.
type Rest struct{ Reads, Idle Pace }

// NewRest returns a Rest without counts, for the step with the given baseline. `quiet` is the
// duration of a period in which requests are counted.
func NewRest(base *baseline.BaseStep, quiet time.Duration) *Rest {
	return &Rest{Reads: Pace{Quiet: quiet, Before: base.Reads}, Idle: Pace{Quiet: quiet, Before: base.Idle}}
}

// Open reports whether the requests must be counted in another period to decide whether the
// operator is in a hot loop (continuous requests).
func (r *Rest) Open() bool { return r.Reads.Open() || r.Idle.Open() }

// Add records the numbers of reads and of writes without effect in another period.
func (r *Rest) Add(reads, idle int) {
	r.Reads.Add(reads)
	r.Idle.Add(idle)
}

// Busy returns a problem if the operator reads in a hot loop (continuously), and a problem if it
// sends writes without effect in a hot loop.
func (r *Rest) Busy(step int) []Problem {
	return append(r.Reads.busy("reads", step), r.Idle.busy("writes that change nothing", step)...)
}
