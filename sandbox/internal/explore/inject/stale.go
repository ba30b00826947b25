// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/watch"

	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/faults"
	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/observe"
	"tidekeeper.dev/tidekeeper/sandbox/internal/fault"
	"tidekeeper.dev/tidekeeper/sandbox/internal/results"
)

// StartStale restarts the operator with outdated lists, which show the state at the time
// Fault.AsOf. Later events reach the operator only after the cluster has become quiet.
func (i *RunInjector) StartStale(ctx context.Context) error {
	step := i.Settler.Step
	revision, err := i.moment(i.fault.AsOf)
	if err != nil {
		return err
	}
	match := fault.Match{Resources: i.base.Listed}
	if i.fault.Resource != "" {
		match.Resources = []string{i.fault.Resource}
	}
	if len(match.Resources) == 0 {
		return i.Crash(ctx) // The operator sends no list request that can be answered with a stale list.
	}
	i.Notes.Add(results.Fault+"lists are as of revision %d (%s), and later events do not arrive yet", revision, i.fault.AsOf)
	lists := match
	lists.Verbs = []string{"list"}
	stale := fault.Fault{Kind: fault.Stale, ResourceVersion: strconv.FormatInt(revision, 10), Cached: true}
	if err := i.Rules.add(faults.FaultRule, lists, fault.Count{}, stale); err != nil {
		return err
	}
	if err := i.Rules.add(faults.FreezeRule, match, fault.Count{}, fault.Fault{Kind: fault.Freeze}); err != nil {
		return err
	}
	i.Operator.Kill()
	if err := i.Leadership.free(ctx); err != nil {
		return err
	}
	if err := i.Operator.Start(); err != nil {
		return err
	}
	i.Notes.Add("the operator is killed, and started again")
	i.Settler.Act()
	i.restUp(ctx, step, i.base.Steps[0].Took+i.base.Steps[step].Took)
	i.Rules.Remove(faults.FaultRule)
	i.Rules.Remove(faults.FreezeRule)
	i.Notes.Add("the events arrive")
	i.Settler.Act()
	return nil
}

// restUp waits until the operator has opened its watches, then until the cluster is quiet. The
// limit applies to each of the two waits.
func (i *RunInjector) restUp(ctx context.Context, step int, limit time.Duration) {
	for end := time.Now().Add(limit); len(i.Settler.MissingWatches()) > 0 && time.Now().Before(end) && ctx.Err() == nil; {
		time.Sleep(observe.Look)
	}
	i.Settler.Rest(ctx, step, limit)
}

// moment returns the etcd revision that a Fault.AsOf refers to in this run.
func (i *RunInjector) moment(asOf string) (int64, error) {
	if text, is := strings.CutPrefix(asOf, "step "); is {
		step, err := strconv.Atoi(text)
		if err != nil || step < 0 || step >= len(i.Settler.Revisions) {
			return 0, fmt.Errorf("there is no moment %q yet", asOf)
		}
		return i.Settler.Revisions[step], nil
	}
	key, is := strings.CutPrefix(asOf, "deleting ")
	if !is {
		return 0, fmt.Errorf("there is no moment %q: want \"step N\" or \"deleting RESOURCE NAMESPACE/NAME\"", asOf)
	}
	versions, err := i.Recorder.All()
	if err != nil {
		return 0, err
	}
	for n := range versions {
		if v := &versions[n]; v.Key() == key && (v.Type == watch.Deleted || v.Object.GetDeletionTimestamp() != nil) {
			if v.Type != watch.Deleted {
				return v.Revision, nil
			}
			// The object had no finalizers, so it was removed immediately. The last revision that
			// contains it is the revision before its removal.
			return v.Revision - 1, nil
		}
	}
	return 0, fmt.Errorf("%s was not deleted in this run", key)
}
