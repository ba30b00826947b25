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

// waitError is the error of a step whose condition did not come true within the limit.
type waitError struct {
	step   *workload.Step
	after  time.Duration
	reason string
}

func (e *waitError) Error() string {
	return fmt.Sprintf("%s: not after %s (%s)", words.OneLine(e.step.Name), e.after.Round(time.Second), e.reason)
}

// errStuck ends a run in which the command of a step waits for a change that cannot come before
// later steps. The run is not judged.
var errStuck = errors.New("a command waits for what does not come")

// untilStuck waits until a step is performed, or until its command may be waiting for the
// fault, which then has to be injected first. It returns errStuck if the command has not ended
// in time and the fault lasts until a later step.
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

// waitLimit returns the limit for the wait of a step; 0 is the timeout of the step itself. With
// a fault, the wait may take longer by Patience. While a fault holds back events, the condition
// may not come true at all, so the limit is short.
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

// failed classifies an error of a step. In a run without a fault the error is returned and ends
// the exploration; with a fault it becomes a problem of the run.
func (r *run) failed(ctx context.Context, s *workload.Step, err error) error {
	var waited *waitError
	switch {
	case errors.As(err, &waited) && r.fault == nil:
		return fmt.Errorf("step %d: %w, though nothing was disturbed: the operator does not do what the workload waits for, or needs more time (timeout); its output ends with\n%s",
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

// failedStep adds the problem of a failed step, unless the fault explains the failure.
func (r *run) failedStep(waited bool, reason string) {
	if p := judge.FailedStep(r.fault, r.settler.Step, waited, reason); p != nil {
		r.outcome.Problems = append(r.outcome.Problems, *p)
	}
}
