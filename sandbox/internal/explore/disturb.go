// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/faults"
)

// Faults are those of some writes, with how promising each is.
type Faults []planned

// disturbed is the step of the faults in a session: what is done there is the only one.
const disturbed = 1

// Faults returns the faults of what the operator has written since the mark. Where a write
// came to nothing, such as the deletion of what is not there, there is little to disturb. A
// session does not know what users made and how long things take, as some faults must.
func (s *Session) Faults() Faults {
	versions, _ := s.run.recorder.all()
	stable := map[string]bool{}
	for i := range versions {
		if key := versions[i].key(); (anonymizer{}).key(&versions[i]) == key {
			stable[key] = true
		}
	}
	locks := s.run.log.lockKeys()
	var writes []Request
	seen, failed := map[Call]int{}, map[string]bool{}
	for _, r := range s.run.log.since(s.from) {
		if r.Resource != "" && r.writes(locks) {
			writes = append(writes, r)
			call := callOf(&r, stable)
			seen[call]++
			failed[fmt.Sprint(call, seen[call])] = !r.succeeded()
		}
	}
	var all Faults
	planCalls(writes, disturbed, stable, nil, false, func(score int, f Fault) {
		if !failed[fmt.Sprint(f.Call, f.Nth)] && f.entry().InFuzz {
			all = append(all, planned{f, score})
		}
	})
	mostPromisingFirst(all)
	return all
}

// Variety chooses faults that are unlike those that it has chosen before.
type Variety struct{ history *history }

// NewVariety returns one that has chosen nothing.
func NewVariety() *Variety { return &Variety{newHistory()} }

// Choose returns the most promising faults, at most that many.
func (v *Variety) Choose(all Faults, most int) []Fault {
	left := append(Faults(nil), all...)
	var chosen []Fault
	for len(chosen) < most && len(left) > 0 {
		i := v.history.next(left)
		chosen = append(chosen, left[i].Fault)
		v.history.notePlayed(&left[i].Fault)
		left = append(left[:i], left[i+1:]...)
	}
	return chosen
}

// Disturb does something, and has the fault disturb what the operator does then. It reports
// whether that came: it is not waited for longer than the limit, or when nothing was done.
// All is calm when nothing happens for that time undisturbed.
func (s *Session) Disturb(ctx context.Context, f Fault, limit, calm time.Duration, do func() (done bool, err error)) (bool, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	i := s.run.injector
	i.rules.remove(faultRule)
	s.fault, i.fault, i.reached = &f, &f, false
	injected, err := i.arm(ctx)
	if err != nil {
		return false, err
	}
	if done, err := do(); err != nil || !done {
		i.rules.remove(faultRule)
		return false, err
	}
	if err := i.strike(ctx, injected, closed, limit, calm); err != nil || !i.reached || f.entry().Duration() == 0 {
		return i.reached, err
	}
	select {
	case <-time.After(f.entry().Duration()):
		return true, nil
	case <-ctx.Done():
		return true, ctx.Err()
	}
}

// CheckWrite says what is wrong with a fault that is to be one of a write in a session.
func (f Fault) CheckWrite() error {
	switch {
	case f.entry().Hits != faults.Write:
		return fmt.Errorf("there is no fault %q of a write", f.Kind)
	case f.Call == nil || f.Call.Verb == "" || f.Call.Resource == "":
		return errors.New("the fault has no call: the verb and the resource of a write")
	case f.Nth < 1:
		return fmt.Errorf("the fault is of the call number %d: they are counted from 1", f.Nth)
	case f.Step != disturbed:
		return fmt.Errorf("the fault is of the step %d: there is only one", f.Step)
	}
	return nil
}

// OnWrite names a fault of a write.
func (f Fault) OnWrite() string {
	return fmt.Sprintf("%s of the %s %s", f.Kind, ordinal(f.Nth), f.Call)
}

// Means says what such a fault is.
func (f Fault) Means() string { return f.entry().Text }
