// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/faults"
)

// waitError says that what a step waits for did not come true.
type waitError struct {
	step   *Step
	after  time.Duration
	reason string
}

func (e *waitError) Error() string {
	return fmt.Sprintf("%s: not after %s (%s)", oneLine(e.step.Name), e.after.Round(time.Second), e.reason)
}

// asKubectl is how kubectl deletes: what belongs to an object goes with it, also where a client
// that says nothing leaves it behind, as it does that of Jobs.
var asKubectl = metav1.DeleteOptions{PropagationPolicy: new(metav1.DeletePropagationBackground)}

// doing is what a step does, while it does it. The error is there when it is done.
type doing struct {
	done   chan struct{}
	err    error
	cancel context.CancelFunc
}

// closed is what is done already.
var closed = func() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

// begin begins to do what a step does.
func (r *run) begin(ctx context.Context, s *Step) *doing {
	ctx, cancel := context.WithCancel(ctx)
	d := &doing{done: make(chan struct{}), cancel: cancel}
	go func() {
		defer cancel()
		defer close(d.done)
		d.err = r.perform(ctx, s)
	}()
	return d
}

// perform does what a step does, and does not wait for what it waits for.
func (r *run) perform(ctx context.Context, s *Step) error {
	switch {
	case s.Apply != "":
		return r.sandbox.kubectl(ctx, s.Apply, "apply", "--server-side", "--force-conflicts", "-f", "-")
	case s.Patch != nil:
		patch, err := json.Marshal(s.Patch.Merge)
		if err != nil {
			return err
		}
		return r.patch(ctx, s.Patch.Target, s.Patch.Subresource, patch)
	case s.Delete != nil:
		resource, err := r.resource(s.Delete.Resource)
		if err != nil {
			return err
		}
		return r.recorder.client.Resource(resource).Namespace(s.Delete.Namespace).Delete(ctx, s.Delete.Name, asKubectl)
	case s.Run != "":
		return r.script(ctx, s.Run)
	}
	return nil
}

// script runs the command of a step, which must end: as long as it may take to come to rest.
func (r *run) script(ctx context.Context, text string) error {
	limit := r.Settle
	if r.fault != nil {
		limit += r.Patience
	}
	within, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	err := r.sandbox.command(within, "", "sh", "-c", text)
	if ctx.Err() == nil && within.Err() != nil {
		return fmt.Errorf("it has not ended in %s (--settle)", limit)
	}
	return err
}

// patch applies a JSON merge patch, and again if it lost to another write.
func (r *run) patch(ctx context.Context, t Target, subresource string, patch []byte) error {
	resource, err := r.resource(t.Resource)
	if err != nil {
		return err
	}
	var subresources []string
	if subresource != "" {
		subresources = []string{subresource}
	}
	for {
		_, err := r.recorder.client.Resource(resource).Namespace(t.Namespace).Patch(ctx, t.Name, types.MergePatchType, patch, metav1.PatchOptions{}, subresources...)
		if !apierrors.IsConflict(err) {
			return err
		}
	}
}

// resource finds a resource by what it is called.
func (r *run) resource(named string) (schema.GroupVersionResource, error) {
	for name, resource := range r.recorder.watched {
		if resourceIs(name, named) {
			return resource, nil
		}
	}
	if slices.Contains(unrecorded, named) {
		return schema.GroupVersionResource{}, fmt.Errorf("%s are not recorded: they change all the time, or follow from other objects", named)
	}
	return schema.GroupVersionResource{}, fmt.Errorf("the API server has no resource %q: it is written like deployments.apps, and its CRD must be among what is installed", named)
}

// wait waits for the condition of a step. It returns a waitError if the limit is over; one
// of 0 is the step's own.
func (r *run) wait(ctx context.Context, s *Step, limit time.Duration) error {
	if _, err := r.resource(s.Wait.Resource); err != nil {
		return err
	}
	if limit == 0 {
		limit = s.Wait.Timeout.Duration
	}
	over := time.After(limit)
	for {
		changed := r.recorder.next()
		reason := "it is not there"
		object := r.recorder.find(s.Wait.Target)
		switch {
		case s.Wait.For == deleted && object == nil:
			return nil
		case s.Wait.For == deleted:
			reason = "it is still there"
		case object != nil:
			is, why := s.Wait.condition.Holds(object.Object, nil)
			if is {
				return nil
			}
			if reason = why; reason == "" {
				reason = "it is false"
			}
		}
		select {
		case <-changed:
		case <-over:
			return &waitError{step: s, after: limit, reason: reason}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// errStuck ends a run in which users do not go on, as they wait for what does not come before
// later steps.
var errStuck = errors.New("a command waits for what does not come")

// untilStuck waits until what a step does is done, or until a fault has to be injected for it to
// go on.
func (r *run) untilStuck(ctx context.Context, step int, s *Step, doing *doing) error {
	f := r.fault
	mine := f != nil && step >= f.Step && step <= f.Until
	switch {
	case s.Run != "" && mine && f.effects().Lasts:
		select {
		case <-doing.done:
		case <-time.After(r.baseline.Steps[step].Took + 3*time.Second):
			if step < f.Until {
				doing.cancel()
				<-doing.done
				return errStuck
			}
		}
	case s.Run != "" && mine && f.entry().Hits != faults.Start:
	default:
		<-doing.done
	}
	return ctx.Err()
}

// waitLimit is how long a step waits. With a fault, that may take longer; and while events
// are held back, what it waits for may not come at all. 0 is as long as the step says.
func (r *run) waitLimit(s *Step) time.Duration {
	step := len(r.outcome.Steps)
	switch {
	case r.fault == nil:
		return 0
	case r.fault.effects().Lasts && step >= r.fault.Step && step < r.fault.Until:
		return 3 * time.Second
	}
	return s.Wait.Timeout.Duration + r.Patience
}

// failed judges an error of a step: without a fault it ends all, with one it is a problem.
func (r *run) failed(ctx context.Context, s *Step, err error) error {
	var waited *waitError
	switch {
	case errors.As(err, &waited) && r.fault == nil:
		return fmt.Errorf("step %d: %w, though nothing was disturbed: the operator does not do what the workload waits for, or needs more time (timeout); its output ends with\n%s",
			len(r.outcome.Steps), err, indent(r.operator.output.tail(10)))
	case errors.As(err, &waited):
		if step := len(r.outcome.Steps); !r.fault.effects().Lasts || step < r.fault.Step || step >= r.fault.Until {
			r.problem(NotReached, waited.Error())
		}
		return nil
	case err != nil && r.fault == nil:
		return fmt.Errorf("step %d (%s): %w", len(r.outcome.Steps), oneLine(s.Name), err)
	case err != nil && ctx.Err() == nil:
		r.problem(NotReached, fmt.Sprintf("step %d (%s): %v", len(r.outcome.Steps), oneLine(s.Name), err))
		return nil
	}
	return err
}
