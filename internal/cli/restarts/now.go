// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package restarts

import (
	"context"
	"errors"
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

// nowOptions holds the flags and arguments of restarts now.
type nowOptions struct {
	targets
	wait    bool
	timeout cmdutil.Duration
}

func newNowCommand(e *cmdutil.Env) *cobra.Command {
	o := &nowOptions{targets: targets{Env: e}}
	cmd := &cobra.Command{
		Use:   "now (NAME | TYPE/NAME)... | -l SELECTOR | --all",
		Short: "Request a restart now",
		Long: `now requests a restart: an additional tick, under the same rules as a tick of the
schedule, even if the schedule is suspended. It does not ask for confirmation. The restart
may have to wait, as every tick does, for example until all pods are available; kubectl tide
restarts shows that.

With the name of a workload, such as deployment/web, it requests a restart by the
ScheduledRestart of that workload; if there are several, name one of them.

With --wait, it waits until each requested restart has an outcome, prints it, and says on
stderr why it is not done yet. After --timeout it ends with an error; the requests stay.

Exit codes: 0 requested, with --wait: all succeeded, 2 a restart was missed, skipped or has
failed, 1 an error, or those of kubectl tide --help.`,
		Example: `  kubectl tide restarts now web -n shop
  kubectl tide restarts now deployment/web -n shop --dry-run=server
  kubectl tide restarts now web -n shop --wait --timeout 10m
  kubectl tide restarts -n shop --older-than 24h -o name | xargs -r kubectl tide restarts now -n shop`,
		ValidArgsFunction: e.Kubeconfig.CompleteNames(emptyList),
		RunE:              cmdutil.RunE(o),
	}
	o.addTo(cmd)
	cmd.Flags().BoolVar(&o.wait, "wait", false, "wait until the restarts have an outcome")
	cmd.Flags().Var(&o.timeout, "timeout", "with --wait, how long to wait, such as 10m; without it, until there is an outcome")
	return cmd
}

// Validate implements [cmdutil.Options].
func (o *nowOptions) Validate() error {
	switch {
	case o.timeout.Duration > 0 && !o.wait:
		return errors.New("--timeout needs --wait")
	case o.wait && o.DryRun == cmdutil.DryRunServer:
		return errors.New("--wait and --dry-run exclude each other: a dry run restarts nothing")
	}
	return o.targets.Validate()
}

// Run implements [cmdutil.Options].
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
	if len(items) == 0 {
		return nil
	}
	asker := o.asker(ctx, c)
	var requests []*awaited
	for i := range items {
		done, err := asker.request(ctx, &items[i])
		if err != nil {
			return err
		}
		requests = append(requests, &awaited{restart: items[i].DeepCopy(), tick: done.at})
		fmt.Fprintf(o.Console.Out, "%s: %s%s\n", displayName(&items[i]), done.text, o.DryRun.Suffix())
		for _, warning := range done.warnings {
			o.Console.Note("warning: " + items[i].Name + ": " + warning)
		}
		if len(done.alsoBy) > 0 {
			o.Console.Note(fmt.Sprintf("note: %s is also restarted by %s", view.TargetOf(&items[i]), strings.Join(done.alsoBy, ", ")))
		}
	}
	if err := asker.noteManager(ctx, o.DryRun == cmdutil.DryRunServer); err != nil || !o.wait {
		return err
	}
	return o.waitFor(ctx, c, requests)
}

// asker returns an asker for the namespace of the command.
func (o *nowOptions) asker(ctx context.Context, c client.Client) *asker {
	return newAsker(ctx, o.Env, c, o.namespace, o.DryRun.PatchOptions())
}

// namesOf joins the names of ScheduledRestarts with commas.
func namesOf(items []tidekeeperv1.ScheduledRestart) string {
	var names []string
	for i := range items {
		names = append(names, items[i].Name)
	}
	return strings.Join(names, ", ")
}

// requestTime returns the scheduled time (tick) for a requested restart. It is the current time in
// whole seconds, but later than the last request, because the manager ignores a repeated time. For
// the method Evict, the time is rounded up. Creation times have whole seconds, so a pod created
// earlier in the same second would otherwise not count as older than the request, and would not be
// evicted.
func requestTime(r *tidekeeperv1.ScheduledRestart, now time.Time) time.Time {
	tick := now.Truncate(time.Second).UTC()
	if r.Spec.Method == tidekeeperv1.MethodEvict && tick.Before(now) {
		tick = tick.Add(time.Second)
	}
	if last := r.Status.LastRequestTime; last != nil && !tick.After(last.Time) {
		tick = last.Add(time.Second).UTC()
	}
	return tick
}
