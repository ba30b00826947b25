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
func (i *injector) Restart(ctx context.Context) error {
	i.reached = true
	return i.Crash(ctx)
}

// StartStale starts the operator again, on lists from an earlier moment.
func (i *injector) StartStale(ctx context.Context) error {
	step := i.settler.step
	revision, err := i.moment(i.fault.AsOf)
	if err != nil {
		return err
	}
	match := fault.Match{Resources: i.base.Listed}
	if i.fault.Resource != "" {
		match.Resources = []string{i.fault.Resource}
	}
	if len(match.Resources) == 0 {
		return i.Crash(ctx) // It asks for no list that may be stale.
	}
	i.notes.add(results.Fault+"lists are as of revision %d (%s), and later events do not arrive yet", revision, i.fault.AsOf)
	lists, begun := match, i.log.len()
	lists.Verbs = []string{"list"}
	stale := fault.Fault{Kind: fault.Stale, ResourceVersion: strconv.FormatInt(revision, 10), Cached: true}
	if err := i.rules.add(faultRule, lists, fault.Count{}, stale); err != nil {
		return err
	}
	if err := i.rules.add(freezeRule, match, fault.Count{}, fault.Fault{Kind: fault.Freeze}); err != nil {
		return err
	}
	i.operator.kill()
	if err := i.leadership.free(ctx); err != nil {
		return err
	}
	if err := i.operator.start(); err != nil {
		return err
	}
	i.notes.add("the operator is killed, and started again")
	i.settler.act()
	i.restUp(ctx, step, i.base.Steps[0].Took+i.base.Steps[step].Took)
	i.reached = slices.ContainsFunc(i.log.since(begun), func(r Request) bool { return r.Rule == faultRule && r.Older && r.Status == http.StatusOK })
	i.rules.remove(faultRule)
	i.rules.remove(freezeRule)
	i.notes.add("the events arrive")
	i.settler.act()
	return nil
}

// restUp waits until the operator watches what it does, and all is at rest, or the time is
// over.
func (i *injector) restUp(ctx context.Context, step int, limit time.Duration) {
	for end := time.Now().Add(limit); len(i.settler.missingWatches()) > 0 && time.Now().Before(end) && ctx.Err() == nil; {
		time.Sleep(look)
	}
	i.settler.rest(ctx, step, limit)
}

// moment returns the revision of a moment of this run.
func (i *injector) moment(asOf string) (int64, error) {
	if text, is := strings.CutPrefix(asOf, "step "); is {
		step, err := strconv.Atoi(text)
		if err != nil || step < 0 || step >= len(i.settler.revisions) {
			return 0, fmt.Errorf("there is no moment %q yet", asOf)
		}
		return i.settler.revisions[step], nil
	}
	key, is := strings.CutPrefix(asOf, "deleting ")
	if !is {
		return 0, fmt.Errorf("there is no moment %q: want \"step N\" or \"deleting RESOURCE NAMESPACE/NAME\"", asOf)
	}
	versions, err := i.recorder.all()
	if err != nil {
		return 0, err
	}
	for n := range versions {
		if v := &versions[n]; v.key() == key && (v.Type == watch.Deleted || v.Object.GetDeletionTimestamp() != nil) {
			if v.Type != watch.Deleted {
				return v.Revision, nil
			}
			// It was gone at once; the moment is when it was still there.
			return v.Revision - 1, nil
		}
	}
	return 0, fmt.Errorf("%s was not deleted in this run", key)
}
