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

// Faults returns the faults of what the operator has written since the mark. Where a write
// came to nothing, such as the deletion of what is not there, there is little to disturb. A
// session does not know what users made and how long things take, as some faults must.
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

// Disturb does something, and has the fault disturb what the operator does then. It reports
// whether that came: it is not waited for longer than the limit, or when nothing was done.
// All is calm when nothing happens for that time undisturbed.
func (s *Session) Disturb(ctx context.Context, f faults.Fault, limit, calm time.Duration, do func() (done bool, err error)) (bool, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	i := s.run.injector
	i.Rules.Remove(inject.FaultRule)
	s.fault, i.Fault, i.Reached = &f, &f, false
	injected, err := i.Arm(ctx)
	if err != nil {
		return false, err
	}
	if done, err := do(); err != nil || !done {
		i.Rules.Remove(inject.FaultRule)
		return false, err
	}
	if err := i.Strike(ctx, injected, closed, limit, calm); err != nil || !i.Reached || f.Entry().Duration() == 0 {
		return i.Reached, err
	}
	select {
	case <-time.After(f.Entry().Duration()):
		return true, nil
	case <-ctx.Done():
		return true, ctx.Err()
	}
}
