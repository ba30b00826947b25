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
	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/workload"
	"tidekeeper.dev/tidekeeper/sandbox/internal/words"
)

// waitError reports that a step's condition did not become true within the time limit.
type waitError struct {
	step   *workload.Step
	after  time.Duration
	reason string
}

func (e *waitError) Error() string {
	return fmt.Sprintf("%s: not after %s (%s)", words.OneLine(e.step.Name), e.after.Round(time.Second), e.reason)
}

// errStuck ends a run in which a step's command waits for a change that the fault hides until a
// later step. The fault then counts as if it had not taken effect.
var errStuck = errors.New("a command waits for what does not come")

// untilStuck waits until a step's action has ended. If the action is a command that may wait for
// the end of the fault, it returns earlier, so that the caller can inject or end the fault. If the
// fault lasts until a later step and the command does not exit in time, it cancels the command and
// returns errStuck.
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

// waitLimit returns the timeout for the condition at the end of a step; 0 means the timeout in the
// workload. In a run with a fault, the timeout is longer by Limits.Patience. While a fault hides
// changes from the operator, the timeout is short, because the condition may never become true.
func (r *run) waitLimit(s *workload.Step) time.Duration {
	step := r.settler.Step
	switch {
	case r.fault == nil:
		return 0
	case r.fault.Lasting(step):
		return 3 * time.Second
	}
	return s.Wait.Timeout.Duration + r.Limits.Patience
}

// failed handles a step's error, which may be nil. In a run without a fault, it returns the error,
// which ends the exploration. In a run with a fault, it adds a problem to the run.
func (r *run) failed(ctx context.Context, s *workload.Step, err error) error {
	var waited *waitError
	switch {
	case errors.As(err, &waited) && r.fault == nil:
		return fmt.Errorf("step %d: %w in a run without faults: the operator does not do what the workload waits for, or needs more time (timeout); its last output:\n%s",
			r.settler.Step, err, words.Indent(r.testbed.Operator.Output.Tail(10)))
	case errors.As(err, &waited):
		r.failedStep(true, waited.Error())
		return nil
	case err != nil && r.fault == nil:
		return fmt.Errorf("step %d (%s): %w", r.settler.Step, words.OneLine(s.Name), err)
	case err != nil && ctx.Err() == nil:
		r.failedStep(false, fmt.Sprintf("step %d (%s): %v", r.settler.Step, words.OneLine(s.Name), err))
		return nil
	}
	return err
}

// failedStep adds a failed step's problem to the run, unless the fault explains the failure.
func (r *run) failedStep(waited bool, reason string) {
	if p := judge.FailedStep(r.fault, r.settler.Step, waited, reason); p != nil {
		r.outcome.Problems = append(r.outcome.Problems, *p)
	}
}
