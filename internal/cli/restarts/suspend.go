// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package restarts

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/duration"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/cli/cmdutil"
	"tidekeeper.dev/tidekeeper/internal/restart/decision"
	"tidekeeper.dev/tidekeeper/internal/term"
	"tidekeeper.dev/tidekeeper/internal/view"
)

// suspendOptions holds the flags and arguments of restarts suspend and restarts resume.
type suspendOptions struct {
	targets
	// change suspends or resumes a ScheduledRestart, and returns the outcome to print, such as
	// "resumed".
	change func(ctx context.Context, c client.Client, r *tidekeeperv1.ScheduledRestart) (string, error)
}

func newSuspendCommand(e *cmdutil.Env) *cobra.Command {
	o := &suspendOptions{targets: targets{Env: e}}
	o.change = o.suspend
	cmd := &cobra.Command{
		Use:   "suspend (NAME | TYPE/NAME)... | -l SELECTOR | --all",
		Short: "Suspend the schedule of a restart",
		Long:  "suspend suspends a schedule: no tick starts a restart until it is resumed. A restart in progress continues.",
		Example: `  kubectl tide restarts suspend web api -n shop
  kubectl tide restarts suspend deployment/web -n shop
  kubectl tide restarts suspend --all -n shop`,
		ValidArgsFunction: e.Kubeconfig.CompleteNames(emptyList),
		RunE:              cmdutil.RunE(o),
	}
	o.addTo(cmd)
	return cmd
}

func newResumeCommand(e *cmdutil.Env) *cobra.Command {
	o := &suspendOptions{targets: targets{Env: e}}
	o.change = o.resume
	cmd := &cobra.Command{
		Use:   "resume (NAME | TYPE/NAME)... | -l SELECTOR | --all",
		Short: "Resume the schedule of a restart",
		Long: `resume resumes a schedule that was suspended, or that has stopped after too many
failures in a row. Ticks missed in the meantime are not made up.`,
		Example: `  kubectl tide restarts resume web -n shop
  kubectl tide restarts resume --all -n shop`,
		ValidArgsFunction: e.Kubeconfig.CompleteNames(emptyList),
		RunE:              cmdutil.RunE(o),
	}
	o.addTo(cmd)
	return cmd
}

// Run implements [cmdutil.Options].
func (o *suspendOptions) Run(ctx context.Context) error {
	items, c, err := o.read(ctx)
	if err != nil {
		return err
	}
	for i := range items {
		done, err := o.change(ctx, c, &items[i])
		if err != nil {
			return err
		}
		fmt.Fprintf(o.Console.Out, "%s %s%s\n", displayName(&items[i]), done, o.DryRun.Suffix())
	}
	return nil
}

func (o *suspendOptions) set(ctx context.Context, c client.Client, r *tidekeeperv1.ScheduledRestart, suspend bool) error {
	return patchRestart(ctx, c, r, map[string]any{"spec": map[string]any{"suspend": suspend}}, o.DryRun.PatchOptions())
}

func (o *suspendOptions) suspend(ctx context.Context, c client.Client, r *tidekeeperv1.ScheduledRestart) (string, error) {
	if r.Spec.Suspend {
		return "is already suspended", nil
	}
	if err := o.set(ctx, c, r, true); err != nil {
		return "", err
	}
	if r.Status.Active != nil {
		return "suspended; the restart in progress continues", nil
	}
	return "suspended", nil
}

func (o *suspendOptions) resume(ctx context.Context, c client.Client, r *tidekeeperv1.ScheduledRestart) (string, error) {
	var err error
	switch {
	case r.Spec.Suspend:
		err = o.set(ctx, c, r, false)
	case view.StoppedByFailures(r):
		err = clearFailures(ctx, c, r, o.DryRun == cmdutil.DryRunServer)
	default:
		return "is not suspended" + nextStart(r, o.Now(), o.Local), nil
	}
	return "resumed" + nextStart(r, o.Now(), o.Local), err
}

// nextStart describes the time of the next start of r, as a phrase to append to a message. It uses
// only the spec, because the manager may not have updated the status yet.
func nextStart(r *tidekeeperv1.ScheduledRestart, now time.Time, local *time.Location) string {
	s, windows, err := decision.ParseSchedule(&r.Spec)
	if err != nil {
		return "; but " + term.Printable(err.Error())
	}
	if r.Spec.Suspend {
		return ", and is suspended"
	}
	in := decision.Input{Restart: r, Ticks: s, Windows: windows, Offset: view.OffsetOf(r)}
	tick, until, ok := in.InWindows().Search(now)
	switch {
	case s == nil:
		return ", " + triggers(&r.Spec)
	case !ok && !until.IsZero():
		return ", but no tick of the schedule is inside a window until " + term.ComingInZone(until, now, local)
	case !ok:
		return ", but no tick of the schedule is inside a window"
	}
	start := tick.Add(in.Offset)
	if opens, ok := windows.OpensAt(start); ok {
		start = opens
	}
	return "; next start " + term.ComingInZone(start, now, local)
}

// triggers describes the triggers of a ScheduledRestart without a schedule: the age of its pods, a
// configuration change, or both.
func triggers(spec *tidekeeperv1.ScheduledRestartSpec) string {
	var when []string
	if age := spec.GetMaxPodAge(); age > 0 {
		when = append(when, "when its pods are "+duration.HumanDuration(age)+" old")
	}
	if spec.OnConfigChange != "" {
		when = append(when, "when its configuration changes")
	}
	return strings.Join(when, " and ")
}
