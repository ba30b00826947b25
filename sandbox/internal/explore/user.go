// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/lab"
	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/observe"
	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/workload"
)

// user performs the steps of a workload with administrator rights.
type user struct {
	sandbox  *lab.Sandbox
	recorder *observe.Recorder
	// limit is the timeout of a step's command.
	limit time.Duration
}

// asKubectl holds kubectl's default delete options. Background propagation also deletes dependents
// of kinds such as Job, which orphan their dependents by default.
var asKubectl = metav1.DeleteOptions{PropagationPolicy: new(metav1.DeletePropagationBackground)}

// doing is the action of a step in progress. When the action ends, first err is set to its error,
// and then the channel done is closed.
type doing struct {
	done   chan struct{}
	err    error
	cancel context.CancelFunc
}

// begin starts a step's action in the background.
func (u *user) begin(ctx context.Context, s *workload.Step) *doing {
	ctx, cancel := context.WithCancel(ctx)
	d := &doing{done: make(chan struct{}), cancel: cancel}
	go func() {
		defer cancel()
		defer close(d.done)
		d.err = u.perform(ctx, s)
	}()
	return d
}

// perform performs a step's action, without the wait that follows it.
func (u *user) perform(ctx context.Context, s *workload.Step) error {
	switch {
	case s.Apply != "":
		return u.sandbox.Kubectl(ctx, s.Apply, "apply", "--server-side", "--force-conflicts", "-f", "-")
	case s.Patch != nil:
		patch, err := json.Marshal(s.Patch.Merge)
		if err != nil {
			return err
		}
		return u.recorder.Patch(ctx, s.Patch.Target, s.Patch.Subresource, patch)
	case s.Delete != nil:
		resource, err := u.recorder.Resource(s.Delete.Resource)
		if err != nil {
			return err
		}
		return u.recorder.Client.Resource(resource).Namespace(s.Delete.Namespace).Delete(ctx, s.Delete.Name, asKubectl)
	case s.Run != "":
		return u.script(ctx, s.Run)
	}
	return nil
}

// script runs a step's command, and returns an error if the command does not exit within u.limit.
func (u *user) script(ctx context.Context, text string) error {
	within, cancel := context.WithTimeout(ctx, u.limit)
	defer cancel()
	err := u.sandbox.Command(within, "", "sh", "-c", text)
	if ctx.Err() == nil && within.Err() != nil {
		return fmt.Errorf("it has not ended in %s (--settle)", u.limit)
	}
	return err
}

// wait waits for a step's condition, and returns a waitError if the condition does not become true
// within the limit. A limit of 0 means the timeout in the workload.
func (u *user) wait(ctx context.Context, s *workload.Step, limit time.Duration) error {
	if _, err := u.recorder.Resource(s.Wait.Resource); err != nil {
		return err
	}
	if limit == 0 {
		limit = s.Wait.Timeout.Duration
	}
	over := time.After(limit)
	for {
		changed := u.recorder.Next()
		reason := "it is not there"
		object := u.recorder.Find(s.Wait.Target)
		switch {
		case s.Wait.For == workload.Deleted && object == nil:
			return nil
		case s.Wait.For == workload.Deleted:
			reason = "it is still there"
		case object != nil:
			is, why := s.Wait.Condition.Holds(object.Object, nil)
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
