// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"net/http"
	"slices"
	"time"

	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/observe"
	"tidekeeper.dev/tidekeeper/sandbox/internal/fault"
)

// Names of the proxy rules that inject a fault. Requests and events that a rule hits carry its name
// in the proxy's log.
const (
	FaultRule  = "explore"
	FreezeRule = "explore-freeze"
	ExpireRule = "explore-expire"
	AgainRule  = "explore-again"
)

// Trace is the record by which a fault counts as reached or not: what the proxy, the kernel and the
// API server saw from the time at which the fault's rule was added, or the fault's step began.
type Trace struct {
	// Began is the beginning of the trace, and Now its end.
	Began, Now time.Time
	// Requests lists the operator's completed requests, and the events of its watches that rules
	// have hit.
	Requests []observe.Request
	// Pending is set if the fault's rule has hit a request that is not complete yet.
	Pending bool
	// Processes lists the starts and ends of processes of the operator and the control plane.
	Processes []observe.ProcessEvent
	Versions  []observe.Version
	// Watched lists the resources that the operator watches.
	Watched []string
	// Hold is the time for which faults with Holds hold back events.
	Hold time.Duration
}

// TookEffect reports whether a fault took effect in a run.
func (f *Fault) TookEffect(t *Trace) bool {
	proof := f.Entry().Proof
	return proof != nil && proof(f, t)
}

// Proof reports whether a trace shows a part of a fault's effect.
type Proof func(*Fault, *Trace) bool

// all returns a proof of all the given parts.
func all(parts ...Proof) Proof {
	return func(f *Fault, t *Trace) bool {
		return !slices.ContainsFunc(parts, func(part Proof) bool { return !part(f, t) })
	}
}

// hit returns the first request or event that a rule has hit and for which `is` returns true. It
// returns nil if there is none.
func (t *Trace) hit(rule string, is func(*observe.Request) bool) *observe.Request {
	i := slices.IndexFunc(t.Requests, func(r observe.Request) bool {
		since := r.Time
		if isWatch(&r) {
			since = r.Ended() // It may have begun before the rule was added.
		}
		return r.Rule == rule && !since.Before(t.Began) && is(&r)
	})
	if i < 0 {
		return nil
	}
	return &t.Requests[i]
}

func isWatch(r *observe.Request) bool {
	return (r.Verb == "watch" || r.Verb == fault.VerbWatchList) && r.Event == ""
}

func anyHit(*observe.Request) bool { return true }

// began returns the time of the request or event that the fault has hit first. Without one, it is
// the beginning of the trace.
func (t *Trace) began() time.Time {
	if r := t.hit(FaultRule, anyHit); r != nil {
		return r.Time
	}
	return t.Began
}

// answered returns a proof that a request of the fault ended with a status. 0 means that the
// operator got no answer. `sent` reports whether the API server had answered the request.
func answered(status int, sent bool) Proof {
	return func(_ *Fault, t *Trace) bool {
		return t.hit(FaultRule, func(r *observe.Request) bool {
			return r.Event == "" && r.Status == status && (r.Upstream != 0) == sent
		}) != nil
	}
}

// Proofs that the operator got no answer: to a request that was not sent, or to one that was.
var (
	unsent     = answered(0, false)
	unanswered = answered(0, true)
)

// delayed returns a proof that a request was delayed for a time, or until the operator gave up.
func delayed(by time.Duration) Proof {
	return func(_ *Fault, t *Trace) bool {
		return t.Pending || t.hit(FaultRule, func(r *observe.Request) bool {
			return r.Event == "" && (r.Seconds >= by.Seconds() || r.Status == 0 && r.Upstream == 0)
		}) != nil
	}
}

// sentLater proves that a request of the fault was held, and then answered by the API server.
func sentLater(_ *Fault, t *Trace) bool {
	return t.hit(FaultRule, func(r *observe.Request) bool { return r.Event == "" && r.Fault == fault.Delay && r.Upstream != 0 }) != nil
}

// injected returns a proof that the proxy has done to an event what a kind of fault does.
func injected(kind fault.Kind) Proof {
	return func(_ *Fault, t *Trace) bool {
		return t.hit(FaultRule, func(r *observe.Request) bool { return r.Event != "" && r.Fault == kind }) != nil
	}
}

// ended proves that a watch was ended by the fault.
func ended(_ *Fault, t *Trace) bool {
	return t.hit(FaultRule, func(r *observe.Request) bool { return r.Event == "" }) != nil
}

// restarted returns a proof that the operator was killed and started again after the fault's
// request or event, a number of times.
func restarted(times int) Proof {
	return func(_ *Fault, t *Trace) bool { return t.restarts(observe.OperatorProcess, t.began()) >= times }
}

// startedAgain proves that the operator was killed and started again, at the end of a step.
func startedAgain(_ *Fault, t *Trace) bool { return t.restarts(observe.OperatorProcess, t.Began) > 0 }

// restarts counts the restarts of a killed process since a time.
func (t *Trace) restarts(of string, since time.Time) int {
	n, killed := 0, false
	for _, e := range t.Processes {
		switch {
		case e.Of != of || e.Time.Before(since):
		case e.What == observe.Killed:
			killed = true
		case e.What == observe.Started && killed:
			n, killed = n+1, false
		}
	}
	return n
}

// killedAgain proves that the next write of the restarted operator was not sent either.
func killedAgain(_ *Fault, t *Trace) bool {
	return t.hit(AgainRule, func(r *observe.Request) bool { return r.Status == 0 && r.Upstream == 0 }) != nil
}

// cutOff proves that connections were closed after the fault's request: those of watches, or those
// of later requests.
func cutOff(_ *Fault, t *Trace) bool {
	return slices.ContainsFunc(t.Requests, func(r observe.Request) bool {
		return r.Rule == AgainRule && r.Fault == fault.Close || r.Rule == "" && r.Fault == fault.CutWatch
	})
}

// overtaken proves that another client has written before the fault's request arrived, and that the
// operator did not hear of it at first.
func overtaken(_ *Fault, t *Trace) bool {
	written := slices.DeleteFunc(slices.Clone(t.Versions), func(v observe.Version) bool {
		return v.Time.Before(t.began()) || !v.Touches()
	})
	heard := slices.ContainsFunc(written, func(v observe.Version) bool { return slices.Contains(t.Watched, v.Resource) })
	return len(written) > 0 && (!heard || t.hit(FreezeRule, anyHit) != nil)
}

// succeeded proves that another process led while the first was suspended, and that the first then
// went on.
func succeeded(_ *Fault, t *Trace) bool {
	request := t.hit(FaultRule, anyHit)
	if request == nil {
		return false
	}
	var suspended, resumed, second time.Time
	for _, e := range t.Processes {
		switch {
		case e.Of != observe.OperatorProcess || e.Time.Before(request.Time):
		case e.What == observe.Suspended:
			suspended = e.Time
		case e.What == observe.Started && !suspended.IsZero():
			second = e.Time
		case e.What == observe.Resumed:
			resumed = e.Time
		}
	}
	leads := func(r observe.Request) bool {
		return slices.Contains(observe.Election, r.Resource) && slices.Contains(observe.WriteVerbs, r.Verb) && r.Succeeded() &&
			r.Time.After(second) && r.Time.Before(request.Ended())
	}
	return !second.IsZero() && !resumed.IsZero() && slices.ContainsFunc(t.Requests, leads)
}

// killedMeanwhile returns a proof that a control plane component was killed while the fault's
// request was held, and started again.
func killedMeanwhile(component string) Proof {
	return func(_ *Fault, t *Trace) bool {
		request := t.hit(FaultRule, func(r *observe.Request) bool { return r.Fault == fault.Delay })
		return request != nil && t.restarts(component, request.Time) > 0 && slices.ContainsFunc(t.Processes, func(e observe.ProcessEvent) bool {
			return e.Of == component && e.What == observe.Killed && e.Time.After(request.Time) && e.Time.Before(request.Ended())
		})
	}
}

// listedAgain proves that the operator was made to list the fault's resource after an event was
// dropped.
func listedAgain(f *Fault, t *Trace) bool {
	return t.hit(ExpireRule, func(r *observe.Request) bool { return r.Status == http.StatusGone }) != nil ||
		slices.ContainsFunc(t.Requests, func(r observe.Request) bool {
			return (r.Verb == "list" || r.Verb == fault.VerbWatchList) && r.Event == "" && r.Resource == f.Resource && r.Succeeded() && r.Time.After(t.began())
		})
}

// waited proves that events were held back for the time set by --hold.
func waited(_ *Fault, t *Trace) bool { return t.Now.Sub(t.began()) >= t.Hold }

// staleList proves that the operator was served a list that differs from the current list.
func staleList(_ *Fault, t *Trace) bool {
	return t.hit(FaultRule, func(r *observe.Request) bool { return r.Older && r.Status == http.StatusOK }) != nil
}
