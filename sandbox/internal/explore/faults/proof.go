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

// Names of the proxy rules that inject a fault. The proxy logs the name of a rule with each request
// and event that the rule has hit.
const (
	FaultRule  = "explore"
	FreezeRule = "explore-freeze"
	ExpireRule = "explore-expire"
	AgainRule  = "explore-again"
)

// Trace is the record that shows whether a fault took effect. It contains the observations of the
// proxy, the kernel and the API server since the fault's rule was added, or since the fault's step
// began.
type Trace struct {
	// Began is the beginning of the trace, and Now is its end.
	Began, Now time.Time
	// Requests lists the operator's completed requests, and the events of its watches that were hit
	// by rules.
	Requests []observe.Request
	// Pending is set if the fault's rule has hit a request that is not complete yet.
	Pending bool
	// Processes lists the starts and ends of processes of the operator and the control plane.
	Processes []observe.ProcessEvent
	Versions  []observe.Version
	// Watched lists the resources that the operator watches.
	Watched []string
	// Hold is the value of --hold, the time for which some faults hold back watch events (see
	// Effects.Holds).
	Hold time.Duration
}

// TookEffect reports whether a fault took effect in a run.
func (f *Fault) TookEffect(t *Trace) bool {
	proof := f.Entry().Proof
	return proof != nil && proof(f, t)
}

// Proof reports whether the trace of a run shows that a fault took effect. For a fault that must
// have several effects, such as a lost response and then a restart of the operator, there is a
// Proof for each effect, and the function all combines these Proofs.
type Proof func(*Fault, *Trace) bool

// all returns a Proof that is true if all of the given Proofs are true.
func all(parts ...Proof) Proof {
	return func(f *Fault, t *Trace) bool {
		return !slices.ContainsFunc(parts, func(part Proof) bool { return !part(f, t) })
	}
}

// hit returns the first request or event in the trace that the named rule has hit and for which
// `is` returns true. It returns nil if there is none.
func (t *Trace) hit(rule string, is func(*observe.Request) bool) *observe.Request {
	i := slices.IndexFunc(t.Requests, func(r observe.Request) bool {
		since := r.Time
		if isWatch(&r) {
			since = r.Ended() // A watch may have begun before the rule was added.
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

// began returns the time of the first request or event that the fault has hit. If there is none, it
// returns the beginning of the trace.
func (t *Trace) began() time.Time {
	if r := t.hit(FaultRule, anyHit); r != nil {
		return r.Time
	}
	return t.Began
}

// answered returns a Proof that a request hit by the fault ended with the given HTTP status for the
// operator; 0 means that the operator got no response. `sent` states whether the API server must
// have answered this request.
func answered(status int, sent bool) Proof {
	return func(_ *Fault, t *Trace) bool {
		return t.hit(FaultRule, func(r *observe.Request) bool {
			return r.Event == "" && r.Status == status && (r.Upstream != 0) == sent
		}) != nil
	}
}

// The Proof unsent shows that the proxy did not send a request to the API server. The Proof
// unanswered shows that the API server answered a request, but the operator got no response.
var (
	unsent     = answered(0, false)
	unanswered = answered(0, true)
)

// delayed returns a Proof that a request was delayed for the given time, or until the operator
// canceled it.
func delayed(by time.Duration) Proof {
	return func(_ *Fault, t *Trace) bool {
		return t.Pending || t.hit(FaultRule, func(r *observe.Request) bool {
			return r.Event == "" && (r.Seconds >= by.Seconds() || r.Status == 0 && r.Upstream == 0)
		}) != nil
	}
}

// sentLater proves that a request hit by the fault was held back, and then answered by the API
// server.
func sentLater(_ *Fault, t *Trace) bool {
	return t.hit(FaultRule, func(r *observe.Request) bool { return r.Event == "" && r.Fault == fault.Delay && r.Upstream != 0 }) != nil
}

// heldBack proves that a request hit by the fault was held back.
func heldBack(_ *Fault, t *Trace) bool {
	return t.Pending || t.hit(FaultRule, func(r *observe.Request) bool { return r.Fault == fault.Delay }) != nil
}

// oldAnswer proves that the operator received an earlier answer of an application, which differs from
// the current one.
func oldAnswer(_ *Fault, t *Trace) bool {
	return t.hit(FaultRule, func(r *observe.Request) bool { return r.Older && r.Fault == fault.Stale }) != nil
}

// programRestarted proves that the program of the fault's application was killed and started again.
func programRestarted(f *Fault, t *Trace) bool { return t.restarts(f.Call.Resource, t.began()) > 0 }

// fellBack proves that a pod was not ready any more, after the request that the fault has hit.
func fellBack(_ *Fault, t *Trace) bool {
	return slices.ContainsFunc(t.Versions, func(v observe.Version) bool { return !v.Time.Before(t.began()) && v.FallsBack() })
}

// injected returns a Proof that the proxy has injected a fault of the given kind into an event.
func injected(kind fault.Kind) Proof {
	return func(_ *Fault, t *Trace) bool {
		return t.hit(FaultRule, func(r *observe.Request) bool { return r.Event != "" && r.Fault == kind }) != nil
	}
}

// ended proves that the fault has ended a watch.
func ended(_ *Fault, t *Trace) bool {
	return t.hit(FaultRule, func(r *observe.Request) bool { return r.Event == "" }) != nil
}

// restarted returns a Proof that the operator was killed and started again at least the given
// number of times, after the request or event that the fault has hit.
func restarted(times int) Proof {
	return func(_ *Fault, t *Trace) bool { return t.restarts(observe.OperatorProcess, t.began()) >= times }
}

// startedAgain proves that the operator was killed and started again at the end of a step.
func startedAgain(_ *Fault, t *Trace) bool { return t.restarts(observe.OperatorProcess, t.Began) > 0 }

// restarts counts how often the process named `of` was killed and started again since the given
// time.
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

// killedAgain proves that the restarted operator was killed at its first write, which was not sent
// to the API server.
func killedAgain(_ *Fault, t *Trace) bool {
	return t.hit(AgainRule, func(r *observe.Request) bool { return r.Status == 0 && r.Upstream == 0 }) != nil
}

// cutOff proves that the proxy closed connections of the operator after the request that the fault
// has hit. They may be connections of watches or of later requests.
func cutOff(_ *Fault, t *Trace) bool {
	return slices.ContainsFunc(t.Requests, func(r observe.Request) bool {
		return r.Rule == AgainRule && r.Fault == fault.Close || r.Rule == "" && r.Fault == fault.CutWatch
	})
}

// overtaken proves that another client changed an object before the fault's delayed request reached
// the API server, and that the operator received the event of this change late.
func overtaken(_ *Fault, t *Trace) bool {
	written := slices.DeleteFunc(slices.Clone(t.Versions), func(v observe.Version) bool {
		return v.Time.Before(t.began()) || !v.Touches()
	})
	heard := slices.ContainsFunc(written, func(v observe.Version) bool { return slices.Contains(t.Watched, v.Resource) })
	return len(written) > 0 && (!heard || t.hit(FreezeRule, anyHit) != nil)
}

// succeeded proves that another process became the leader while the first process was suspended,
// and that the first process was then resumed.
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

// killedMeanwhile returns a Proof that a control plane component was killed while the fault's
// request was held back, and was started again.
func killedMeanwhile(component string) Proof {
	return func(_ *Fault, t *Trace) bool {
		request := t.hit(FaultRule, func(r *observe.Request) bool { return r.Fault == fault.Delay })
		return request != nil && t.restarts(component, request.Time) > 0 && slices.ContainsFunc(t.Processes, func(e observe.ProcessEvent) bool {
			return e.Of == component && e.What == observe.Killed && e.Time.After(request.Time) && e.Time.Before(request.Ended())
		})
	}
}

// listedAgain reports whether the operator listed the fault's resource again after the proxy had
// dropped an event. A watch that was rejected with 410 Gone also counts, because the operator must
// then list the resource before it can watch the resource again.
func listedAgain(f *Fault, t *Trace) bool {
	return t.hit(ExpireRule, func(r *observe.Request) bool { return r.Status == http.StatusGone }) != nil ||
		slices.ContainsFunc(t.Requests, func(r observe.Request) bool {
			return (r.Verb == "list" || r.Verb == fault.VerbWatchList) && r.Event == "" && r.Resource == f.Resource && r.Succeeded() && r.Time.After(t.began())
		})
}

// waited proves that events were held back for at least the duration of the --hold flag.
func waited(_ *Fault, t *Trace) bool { return t.Now.Sub(t.began()) >= t.Hold }

// staleList proves that the operator received a list that differs from the current list.
func staleList(_ *Fault, t *Trace) bool {
	return t.hit(FaultRule, func(r *observe.Request) bool { return r.Older && r.Status == http.StatusOK }) != nil
}
