// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package restarts

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/cli/cmdutil"
	"tidekeeper.dev/tidekeeper/internal/view"
)

// nowOptions are those of restarts now.
type nowOptions struct {
	targets
}

func newNowCommand(e *cmdutil.Env) *cobra.Command {
	o := &nowOptions{targets{Env: e}}
	cmd := &cobra.Command{
		Use:   "now (NAME | TYPE/NAME)... | -l SELECTOR | --all",
		Short: "Request a restart now",
		Long: `now requests a restart: one more tick, under the same rules as those of the
schedule, and even if that is suspended. It does not ask for confirmation. The
restart may wait for what every tick waits for, such as all pods being available;
kubectl tide restarts shows it.

With the name of a workload, such as deployment/web, it requests a restart by the
schedule of that workload; if there are several, name one of them.`,
		Example: `  kubectl tide restarts now web -n shop
  kubectl tide restarts now deployment/web -n shop --dry-run=server
  kubectl tide restarts -n shop --older-than 24h -o name | xargs kubectl tide restarts now -n shop`,
		ValidArgsFunction: e.CompleteNames(emptyList),
		RunE:              cmdutil.RunE(o),
	}
	o.addTo(cmd)
	return cmd
}

// Run is part of [cmdutil.Options].
func (o *nowOptions) Run(ctx context.Context) error {
	items, c, err := o.read(ctx)
	if err != nil {
		return err
	}
	for _, ref := range o.refs {
		if same := slices.DeleteFunc(slices.Clone(items), func(r tidekeeperv1.ScheduledRestart) bool { return !ref.matches(&r) }); len(same) > 1 {
			return fmt.Errorf("%s/%s is restarted by %s: name one of them", ref.workload, ref.name, namesOf(same))
		}
	}
	shared := o.shared(ctx, c)
	for i := range items {
		if err := o.request(ctx, c, &items[i], shared); err != nil {
			return err
		}
	}
	return o.NoteNoLeader(ctx, c)
}

// request requests one restart.
func (o *nowOptions) request(ctx context.Context, c client.Client, r *tidekeeperv1.ScheduledRestart, shared view.Shared) error {
	tick, err := requestRestart(ctx, c, r, o.Now(), o.patchOptions())
	if err != nil {
		return err
	}
	fmt.Fprintf(o.Out, "%s: requested a restart of %s %s at %s%s%s\n", displayName(r), r.Spec.TargetRef.Kind, r.Spec.TargetRef.Name, tick, queue(r), o.suffix())
	shown := view.RestartOf(r, shared)
	if warning := obstacle(shown); warning != "" {
		o.Note("warning: " + r.Name + ": " + warning)
	}
	if len(shown.AlsoBy) > 0 {
		o.Note(fmt.Sprintf("note: %s is also restarted by %s", shown.Target, strings.Join(shown.AlsoBy, ", ")))
	}
	return nil
}

// shared finds other schedules of the same workloads. That is only a hint, and
// left out without the right to list.
func (o *nowOptions) shared(ctx context.Context, c client.Client) view.Shared {
	list, err := listRestarts(ctx, c, client.InNamespace(o.namespace))
	if err != nil {
		return nil
	}
	return view.SharedTargets(list.Items)
}

// namesOf lists names for a message.
func namesOf(items []tidekeeperv1.ScheduledRestart) string {
	var names []string
	for i := range items {
		names = append(names, items[i].Name)
	}
	return strings.Join(names, ", ")
}

// requestTime is the tick to ask for: now in whole seconds, but later than the
// last request, from which an equal time would not differ.
func requestTime(r *tidekeeperv1.ScheduledRestart, now time.Time) time.Time {
	tick := now.Truncate(time.Second).UTC()
	if last := r.Status.LastRequestTime; last != nil && !tick.After(last.Time) {
		tick = last.Add(time.Second).UTC()
	}
	return tick
}

// queue says what the requested restart follows.
func queue(r *tidekeeperv1.ScheduledRestart) string {
	if r.Status.Active == nil {
		return ""
	}
	return "; one is under way, and this one follows it"
}

// obstacle says why the requested restart will not start, as far as the status
// knows.
func obstacle(r view.Restart) string {
	switch r.Status.Reason {
	case view.Unknown, tidekeeperv1.ReasonTargetNotFound, tidekeeperv1.ReasonStrategyOnDelete, tidekeeperv1.ReasonStrategyPartition:
		return r.Status.Message
	default:
		return ""
	}
}
