// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/watch"

	"tidekeeper.dev/tidekeeper/sandbox/internal/fault"
	"tidekeeper.dev/tidekeeper/sandbox/internal/results"
)

// Restart starts the operator again, on current lists.
func (r *run) Restart(ctx context.Context) error {
	r.outcome.Reached = true
	return r.Crash(ctx)
}

// StartStale starts the operator again, on lists from an earlier moment.
func (r *run) StartStale(ctx context.Context) error {
	step := len(r.outcome.Steps)
	revision, err := r.moment(r.fault.AsOf)
	if err != nil {
		return err
	}
	match := fault.Match{Resources: r.baseline.Listed}
	if r.fault.Resource != "" {
		match.Resources = []string{r.fault.Resource}
	}
	if len(match.Resources) == 0 {
		return r.Crash(ctx) // It asks for no list that may be stale.
	}
	r.note(results.Fault+"lists are as of revision %d (%s), and later events do not arrive yet", revision, r.fault.AsOf)
	lists, begun := match, r.log.len()
	lists.Verbs = []string{"list"}
	stale := fault.Fault{Kind: fault.Stale, ResourceVersion: strconv.FormatInt(revision, 10), Cached: true}
	if err := r.rule(faultRule, lists, fault.Count{}, stale); err != nil {
		return err
	}
	if err := r.rule(freezeRule, match, fault.Count{}, fault.Fault{Kind: fault.Freeze}); err != nil {
		return err
	}
	r.operator.kill()
	if err := r.freeLeases(ctx); err != nil {
		return err
	}
	if err := r.operator.start(); err != nil {
		return err
	}
	r.note("the operator is killed, and started again")
	r.stepBegan = time.Now()
	r.restUp(ctx, step, r.baseline.Steps[0].Took+r.baseline.Steps[step].Took)
	r.outcome.Reached = slices.ContainsFunc(r.log.since(begun), func(r Request) bool { return r.Rule == faultRule && r.Older && r.Status == http.StatusOK })
	r.remove(faultRule)
	r.remove(freezeRule)
	r.note("the events arrive")
	r.stepBegan = time.Now()
	return nil
}

// restUp waits until the operator watches what it does, and all is at rest, or the time is
// over.
func (r *run) restUp(ctx context.Context, step int, limit time.Duration) {
	for end := time.Now().Add(limit); len(r.missingWatches()) > 0 && time.Now().Before(end) && ctx.Err() == nil; {
		time.Sleep(look)
	}
	r.rest(ctx, step, limit)
}

// moment returns the revision of a moment of this run.
func (r *run) moment(asOf string) (int64, error) {
	if text, is := strings.CutPrefix(asOf, "step "); is {
		step, err := strconv.Atoi(text)
		if err != nil || step < 0 || step > len(r.outcome.Steps) {
			return 0, fmt.Errorf("there is no moment %q yet", asOf)
		}
		if step == len(r.outcome.Steps) {
			return r.stepRevision, nil
		}
		return r.outcome.Steps[step].Revision, nil
	}
	key, is := strings.CutPrefix(asOf, "deleting ")
	if !is {
		return 0, fmt.Errorf("there is no moment %q: want \"step N\" or \"deleting RESOURCE NAMESPACE/NAME\"", asOf)
	}
	versions, err := r.recorder.all()
	if err != nil {
		return 0, err
	}
	for i := range versions {
		if v := &versions[i]; v.key() == key && (v.Type == watch.Deleted || v.Object.GetDeletionTimestamp() != nil) {
			if v.Type != watch.Deleted {
				return v.Revision, nil
			}
			// It was gone at once; the moment is when it was still there.
			return v.Revision - 1, nil
		}
	}
	return 0, fmt.Errorf("%s was not deleted in this run", key)
}
