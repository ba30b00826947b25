// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/faults"
	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/judge"
	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/words"
	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/workload"
)

// waitError says that the condition of a step did not come true.
type waitError struct {
	step   *workload.Step
	after  time.Duration
	reason string
}

func (e *waitError) Error() string {
	return fmt.Sprintf("%s: not after %s (%s)", words.OneLine(e.step.Name), e.after.Round(time.Second), e.reason)
}

// errStuck ends a run in which users do not go on, as they wait for what does not come before
// later steps.
var errStuck = errors.New("a command waits for what does not come")

// untilStuck waits until a step is performed, or until a fault has to be injected for it to
// go on.
func (r *run) untilStuck(ctx context.Context, step int, s *workload.Step, doing *doing) error {
	f := r.fault
	mine := f != nil && step >= f.Step && step <= f.Until
	switch {
	case s.Run != "" && mine && f.Effects().Lasts:
		select {
		case <-doing.done:
		case <-time.After(r.baseline.Steps[step].Took + 3*time.Second):
			if step < f.Until {
				doing.cancel()
				<-doing.done
				return errStuck
			}
		}
	case s.Run != "" && mine && f.Entry().Hits != faults.Start:
	default:
		<-doing.done
	}
	return ctx.Err()
}

// waitLimit is how long a step waits. With a fault, that may take longer; and while events
// are held back, what it waits for may not come at all. 0 is as long as the step says.
func (r *run) waitLimit(s *workload.Step) time.Duration {
	step := r.settler.Step
	switch {
	case r.fault == nil:
		return 0
	case r.fault.Effects().Lasts && step >= r.fault.Step && step < r.fault.Until:
		return 3 * time.Second
	}
	return s.Wait.Timeout.Duration + r.Patience
}

// failed judges an error of a step: without a fault it ends all, with a fault it is a problem.
func (r *run) failed(ctx context.Context, s *workload.Step, err error) error {
	var waited *waitError
	switch {
	case errors.As(err, &waited) && r.fault == nil:
		return fmt.Errorf("step %d: %w, though nothing was disturbed: the operator does not do what the workload waits for, or needs more time (timeout); its output ends with\n%s",
			r.settler.Step, err, words.Indent(r.operator.Output.Tail(10)))
	case errors.As(err, &waited):
		if step := r.settler.Step; !r.fault.Effects().Lasts || step < r.fault.Step || step >= r.fault.Until {
			r.problem(judge.NotReached, waited.Error())
		}
		return nil
	case err != nil && r.fault == nil:
		return fmt.Errorf("step %d (%s): %w", r.settler.Step, words.OneLine(s.Name), err)
	case err != nil && ctx.Err() == nil:
		r.problem(judge.NotReached, fmt.Sprintf("step %d (%s): %v", r.settler.Step, words.OneLine(s.Name), err))
		return nil
	}
	return err
}
