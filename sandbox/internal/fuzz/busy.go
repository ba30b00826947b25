// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package fuzz

import (
	"context"
	"fmt"
	"time"

	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/judge"
)

// whileBusy creates the sample again, makes an edit as soon as the operator has begun to react,
// and reverts the edit at once. The operator must reach the state of the sample. meant is set
// if users may want the edit.
func (w *world) whileBusy(ctx context.Context, content map[string]any, meant bool) (*Problem, error) {
	w.session.Act("the object is deleted, and the sample made again")
	if problem, err := w.replace(ctx, w.Sample); err != nil || problem != nil {
		return problem, err
	}
	if err := w.begun(ctx); err != nil {
		return nil, err
	}
	w.session.Act("at once, the edit is made")
	if _, _, err := w.put(ctx, content, false); err != nil && !refused(err) {
		return nil, fmt.Errorf("edit a new object: %w", err)
	}
	_, problem, err := w.restore(ctx)
	if problem != nil && problem.Oracle == judge.OtherState {
		if problem.Oracle = NotHealed; meant {
			problem.Oracle = NotUndone
		}
	}
	return problem.when("after a new object was edited and the sample restored, both at once"), err
}

// begun waits until the operator reacts to the last action, or for the quiet time, if there is
// nothing to react to.
func (w *world) begun(ctx context.Context) error {
	since := time.Now()
	for time.Since(since) < w.quiet && w.session.Activity(time.Since(since)).Requests == 0 {
		select {
		case <-time.After(look / 10):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}
