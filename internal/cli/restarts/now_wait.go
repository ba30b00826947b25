// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package restarts

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/cli/cmdutil"
	"tidekeeper.dev/tidekeeper/internal/view"
)

// lookInterval is the time between two reads of a ScheduledRestart while the command waits for an
// outcome.
const lookInterval = 500 * time.Millisecond

// awaited is a restart request whose outcome the command waits for.
type awaited struct {
	restart *tidekeeperv1.ScheduledRestart
	tick    time.Time
	// said is the latest printed reason why the restart is not done. It prevents printing the same
	// reason twice in a row.
	said string
}

// errReplaced is the error for a request that a later request replaced, so that the history has no
// record of it.
var errReplaced = errors.New("the request has no record: a later request has replaced it")

// outcome returns the record of the requested restart in the ScheduledRestart's history. It returns
// nil while the restart has no outcome.
func (a *awaited) outcome() (*tidekeeperv1.RestartRecord, error) {
	status := &a.restart.Status
	for i := range status.History {
		if record := &status.History[i]; record.Trigger == tidekeeperv1.TriggerRequest && record.ScheduledTime.Time.Equal(a.tick) {
			return record, nil
		}
	}
	if last := status.LastRequestTime; last != nil && !last.Time.Before(a.tick) && !a.inProgress() {
		return nil, errReplaced
	}
	return nil, nil
}

// inProgress reports whether the requested restart is in progress.
func (a *awaited) inProgress() bool {
	active := a.restart.Status.Active
	return active != nil && active.Trigger == tidekeeperv1.TriggerRequest && active.ScheduledTime.Time.Equal(a.tick)
}

// unnoticed is the reason to print while the status of the ScheduledRestart does not reflect the
// restart request.
const unnoticed = "no manager has noticed the request"

// reason describes why the requested restart is not done yet. The restart is in progress or waits,
// or no manager has noticed the request.
func (a *awaited) reason() string {
	switch {
	case a.inProgress():
		return "in progress"
	case a.restart.Status.Active != nil:
		return "waits for a restart in progress"
	case a.restart.Status.PendingRequestTime == nil:
		return unnoticed
	default:
		status := view.RestartOf(a.restart, nil).Status
		return "waits: " + status.Reason + ": " + status.Message
	}
}

// waitFor waits until all requests have an outcome, and prints each outcome. If a restart did not
// succeed, it returns an error with exit code 2.
func (o *nowOptions) waitFor(ctx context.Context, c client.Client, requests []*awaited) error {
	for _, a := range requests {
		a.said = unnoticed
	}
	left, failed := requests, false
	look := func(ctx context.Context) (bool, error) {
		var still []*awaited
		for _, a := range left {
			record, err := o.lookAt(ctx, c, a)
			switch {
			case err != nil:
				return false, fmt.Errorf("%s: %w", displayName(a.restart), err)
			case record == nil:
				still = append(still, a)
			default:
				failed = failed || record.Outcome != tidekeeperv1.OutcomeSucceeded
				fmt.Fprintf(o.Console.Out, "%s: %s\n", displayName(a.restart), outcomeText(record))
			}
		}
		left = still
		return len(left) == 0, nil
	}
	waiting, cancel := ctx, context.CancelFunc(func() {})
	if o.timeout.Duration > 0 {
		waiting, cancel = context.WithTimeout(ctx, o.timeout.Duration)
	}
	defer cancel()
	err := wait.PollUntilContextCancel(waiting, lookInterval, true, look)
	switch {
	case err != nil && ctx.Err() == nil && waiting.Err() != nil:
		return fmt.Errorf("%d of %d requested restarts have no outcome after %s, and are not withdrawn: %s: %s",
			len(left), len(requests), o.timeout.String(), displayName(left[0].restart), left[0].said)
	case err != nil:
		return err
	case failed:
		return &cmdutil.CodedError{Code: cmdutil.ExitNotDone}
	}
	return nil
}

// lookAt reads the ScheduledRestart, and returns the record of the requested restart, or nil while
// the restart has no outcome. It prints the reason why the restart is not done whenever that reason
// changes.
func (o *nowOptions) lookAt(ctx context.Context, c client.Client, a *awaited) (*tidekeeperv1.RestartRecord, error) {
	if err := c.Get(ctx, client.ObjectKeyFromObject(a.restart), a.restart); err != nil {
		return nil, err
	}
	record, err := a.outcome()
	if record != nil || err != nil {
		return record, err
	}
	if reason := a.reason(); reason != a.said {
		if a.said = reason; reason != unnoticed {
			o.Console.Note(displayName(a.restart) + ": " + reason)
		}
	}
	return nil, nil
}

// outcomeText formats the outcome of a restart for the output.
func outcomeText(record *tidekeeperv1.RestartRecord) string {
	text := string(record.Outcome)
	if record.StartedTime != nil {
		text += ", in " + view.FormatDuration(record.CompletedTime.Sub(record.StartedTime.Time))
	}
	if record.Reason != "" {
		text += ": " + record.Reason
	}
	if record.Message != "" {
		text += ": " + record.Message
	}
	return text
}
