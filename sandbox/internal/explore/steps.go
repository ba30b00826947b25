// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
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
		if !errors.IsConflict(err) {
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
