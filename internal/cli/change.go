// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/schedule"
)

func (a *app) nowCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "now NAME",
		Short: "Ask for a restart now",
		Long: `now asks for a restart: one more tick, under the same rules as those of the
schedule, also while that is suspended. It may wait for what every tick waits
for, such as all pods being available; kubectl tide restarts shows it.`,
		Example:           `  kubectl tide restarts now web -n shop`,
		Args:              oneName,
		ValidArgsFunction: a.nameOfRestart(),
		RunE: func(cmd *cobra.Command, args []string) error {
			r, c, err := a.getRestart(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			tick := requestTime(r, a.now()).Format(time.RFC3339)
			change := map[string]any{"metadata": map[string]any{"annotations": map[string]any{tidekeeperv1.RestartNowAnnotation: tick}}}
			if err := patchRestart(cmd.Context(), c, r, change); err != nil {
				return err
			}
			fmt.Fprintf(a.out, "%s: asked for a restart of %s %s at %s%s\n", restartName(r), r.Spec.TargetRef.Kind, r.Spec.TargetRef.Name, tick, standsInTheWay(r))
			return nil
		},
	}
}

// requestTime is the tick to ask for: now in whole seconds, but later than the
// last request, which the same time again would not differ from.
func requestTime(r *tidekeeperv1.ScheduledRestart, now time.Time) time.Time {
	tick := now.Truncate(time.Second).UTC()
	if last := r.Status.LastRequestTime; last != nil && !tick.After(last.Time) {
		tick = last.Add(time.Second).UTC()
	}
	return tick
}

// standsInTheWay says what the restart that was asked for will wait for, as far
// as the status knows.
func standsInTheWay(r *tidekeeperv1.ScheduledRestart) string {
	status, _, message := restartStatus(r)
	switch {
	case r.Status.Active != nil:
		return "; one is under way, and this one follows it"
	case status == "Unknown":
		return "; " + message
	case status == "TargetNotFound", status == "StrategyOnDelete":
		return "; but " + message
	default:
		return ""
	}
}

// suspendCommand makes the commands suspend and resume.
func (a *app) suspendCommand(suspend bool) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "suspend NAME",
		Short:   "Stop the schedule of a restart",
		Long:    "suspend stops a schedule: no tick is started until it is resumed. A restart that is under way goes on.",
		Example: `  kubectl tide restarts suspend web -n shop`,
	}
	if !suspend {
		cmd.Use, cmd.Short = "resume NAME", "Let the schedule of a restart go on"
		cmd.Long = "resume lets a schedule go on that was suspended, or that has stopped after too many failures in a row.\nTicks in between are not made up for."
		cmd.Example = `  kubectl tide restarts resume web -n shop`
	}
	cmd.Args, cmd.ValidArgsFunction = oneName, a.nameOfRestart()
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		ctx := cmd.Context()
		r, c, err := a.getRestart(ctx, args[0])
		if err != nil {
			return err
		}
		set := func(suspend bool) error {
			return patchRestart(ctx, c, r, map[string]any{"spec": map[string]any{"suspend": suspend}})
		}
		if suspend {
			if r.Spec.Suspend {
				fmt.Fprintf(a.out, "%s is suspended already\n", restartName(r))
				return nil
			}
			if err := set(true); err != nil {
				return err
			}
			goesOn := ""
			if r.Status.Active != nil {
				goesOn = "; the restart that is under way goes on"
			}
			fmt.Fprintf(a.out, "%s suspended%s\n", restartName(r), goesOn)
			return nil
		}
		switch {
		case r.Spec.Suspend:
			err = set(false)
		case stoppedByFailures(r):
			// An edit of the spec is what makes it go on, and nothing else is to change.
			if err = set(true); err == nil {
				err = set(false)
			}
		default:
			fmt.Fprintf(a.out, "%s is not suspended%s\n", restartName(r), nextStart(r, a.now(), a.local))
			return nil
		}
		if err != nil {
			return err
		}
		fmt.Fprintf(a.out, "%s resumed%s\n", restartName(r), nextStart(r, a.now(), a.local))
		return nil
	}
	return cmd
}

func stoppedByFailures(r *tidekeeperv1.ScheduledRestart) bool {
	return r.Status.ConsecutiveFailures >= max(1, r.Spec.FailureLimit)
}

// nextStart says when the restart is started next, by its spec.
func nextStart(r *tidekeeperv1.ScheduledRestart, now time.Time, local *time.Location) string {
	s, err := schedule.Parse(r.Spec.Schedule, r.Spec.TimeZone)
	if err != nil {
		return "; but " + err.Error()
	}
	tick, ok := s.Next(now)
	if !ok {
		return ""
	}
	return "; next start " + coming(tick.Add(offsetOf(r)), now, local)
}

// restartName names an object as kubectl does.
func restartName(r *tidekeeperv1.ScheduledRestart) string {
	return "scheduledrestart.tidekeeper.dev/" + r.Name
}

func patchRestart(ctx context.Context, c client.Client, r *tidekeeperv1.ScheduledRestart, change map[string]any) error {
	text, err := json.Marshal(change)
	if err != nil {
		return err
	}
	return c.Patch(ctx, r, client.RawPatch(types.MergePatchType, text), client.FieldOwner(fieldManager))
}
