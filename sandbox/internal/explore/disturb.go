// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"context"
	"fmt"
	"time"

	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/faults"
	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/inject"
	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/observe"
)

// Faults returns the faults that can be injected into the writes of the operator since the
// mark, most promising first. Writes that failed, such as the deletion of a missing object, are
// left out, as there is little to disturb. So are faults that need to know the objects of users
// or the duration of steps: a session has no workload.
func (s *Session) Faults() faults.Faults {
	versions, _ := s.run.recorder.All()
	stable := map[string]bool{}
	for i := range versions {
		if key := versions[i].Key(); (observe.Names{}).Key(&versions[i]) == key {
			stable[key] = true
		}
	}
	locks := s.run.log.LockKeys()
	var writes []observe.Request
	seen, failed := map[observe.Call]int{}, map[string]bool{}
	for _, r := range s.run.log.Since(s.from) {
		if r.Resource != "" && r.Writes(locks) {
			writes = append(writes, r)
			call := observe.CallOf(&r, stable)
			seen[call]++
			failed[fmt.Sprint(call, seen[call])] = !r.Succeeded()
		}
	}
	var all faults.Faults
	faults.PlanCalls(writes, faults.Disturbed, stable, nil, false, func(score int, f faults.Fault) {
		if !failed[fmt.Sprint(f.Call, f.Nth)] && f.Entry().InFuzz {
			all = append(all, faults.Planned{Fault: f, Score: score})
		}
	})
	faults.MostPromisingFirst(all)
	return all
}

// Disturb calls do, and injects a fault into the writes that the operator sends in response. It
// reports whether the fault was reached. It gives up after limit, when nothing has changed for
// a multiple of calm, the usual quiet time, or when do returns false because it changed
// nothing.
func (s *Session) Disturb(ctx context.Context, f faults.Fault, limit, calm time.Duration, do func() (done bool, err error)) (bool, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	i := s.run.injector.Injector
	i.Rules.Remove(inject.FaultRule)
	s.fault = &f
	i.Aim(&f)
	injected, err := i.Arm(ctx)
	if err != nil {
		return false, err
	}
	if done, err := do(); err != nil || !done {
		i.Rules.Remove(inject.FaultRule)
		return false, err
	}
	if err := i.Strike(ctx, injected, closed, limit, calm); err != nil || !i.Reached() || f.Entry().Duration() == 0 {
		return i.Reached(), err
	}
	select {
	case <-time.After(f.Entry().Duration()):
		return true, nil
	case <-ctx.Done():
		return true, ctx.Err()
	}
}
