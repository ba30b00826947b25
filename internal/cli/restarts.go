// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/schedule"
)

const restartKind = "ScheduledRestart"

func (a *app) restartsCommand() *cobra.Command {
	var all, follow bool
	var selector string
	var older span
	output := newOutput("json|yaml|name|wide")
	cmd := &cobra.Command{
		Use:     "restarts",
		Aliases: []string{"restart", "eru"},
		Short:   "Scheduled restarts: what ran, and what is next",
		Long: `restarts lists the scheduled restarts: how each is, what became of its last
tick, how long ago it last succeeded, and when it is started next, on the clock
of this machine.`,
		Example: `  kubectl tide restarts -n shop
  kubectl tide restarts -A -o wide
  kubectl tide restarts -n shop -w
  kubectl tide restarts -A --older-than 24h           # no success for a day, or ever
  kubectl tide restarts -A --older-than 7d -o name`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			printer, err := output.printer("wide")
			if err != nil {
				return err
			}
			switch {
			case follow && printer != nil:
				return fmt.Errorf("-w goes with a table: kubectl get scheduledrestarts -w -o %s follows the objects", *output.flags.OutputFormat)
			case follow && older > 0:
				return fmt.Errorf("-w and --older-than do not go together: what is older changes with the time alone")
			}
			list, err := a.listRestarts(cmd.Context(), all, selector)
			if err != nil {
				return err
			}
			if older > 0 {
				list.Items = slices.DeleteFunc(list.Items, func(r tidekeeperv1.ScheduledRestart) bool {
					return !lastSuccessBefore(&r, a.now().Add(-time.Duration(older)))
				})
			}
			if printer != nil {
				return output.print(printer, list, a.out)
			}
			wide := output.is("wide")
			t := restartsTable(list.Items, all, wide, a.now(), a.local)
			if len(list.Items) == 0 {
				a.sayNothingFound("scheduled restarts", all, older > 0 || selector != "")
			} else if err := t.writeTo(a.out, a.screen); err != nil {
				return err
			}
			if !follow {
				return nil
			}
			return a.followRestarts(cmd.Context(), list, t, all, wide, selector)
		},
	}
	cmd.Flags().BoolVarP(&all, "all-namespaces", "A", false, "those of all namespaces")
	cmd.Flags().StringVarP(&selector, "selector", "l", "", "only those with these labels, such as app=web")
	cmd.Flags().BoolVarP(&follow, "watch", "w", false, "go on, with a line for each change")
	cmd.Flags().Var(&older, "older-than", "only those whose last success is longer ago than this, or that had none; such as 24h or 7d")
	output.addTo(cmd)
	cmd.AddCommand(a.historyCommand(), a.nextCommand(), a.nowCommand(), a.suspendCommand(true), a.suspendCommand(false), a.explainCommand())
	return cmd
}

// followRestarts goes on where a table ends.
func (a *app) followRestarts(ctx context.Context, list *tidekeeperv1.ScheduledRestartList, t *table, all, wide bool, selector string) error {
	chosen, err := labels.Parse(selector)
	if err != nil {
		return err
	}
	c, err := a.client()
	if err != nil {
		return err
	}
	namespace, err := a.namespace(all)
	if err != nil {
		return err
	}
	f := &follower{
		app: a, kind: restartKind, namespace: namespace, list: list, empty: func() client.ObjectList { return &tidekeeperv1.ScheduledRestartList{} },
		options: client.ListOptions{Namespace: namespace, LabelSelector: chosen}, widths: t.atLeast(),
		table: func(o client.Object, now time.Time) *table {
			return restartsTable([]tidekeeperv1.ScheduledRestart{*o.(*tidekeeperv1.ScheduledRestart)}, all, wide, now, a.local)
		},
	}
	return f.follow(ctx, c)
}

// sayNothingFound says on stderr that there is nothing to show.
func (a *app) sayNothingFound(what string, all, filtered bool) {
	where := ""
	if namespace, err := a.namespace(all); err == nil && namespace != "" {
		where = " in the namespace " + namespace
	}
	if filtered {
		where += " that match"
	}
	fmt.Fprintf(a.errOut, "There are no %s%s.\n", what, where)
}

func (a *app) listRestarts(ctx context.Context, all bool, selector string) (*tidekeeperv1.ScheduledRestartList, error) {
	chosen, err := labels.Parse(selector)
	if err != nil {
		return nil, fmt.Errorf("--selector: %w", err)
	}
	c, err := a.client()
	if err != nil {
		return nil, err
	}
	namespace, err := a.namespace(all)
	if err != nil {
		return nil, err
	}
	list := &tidekeeperv1.ScheduledRestartList{}
	if err := c.List(ctx, list, client.InNamespace(namespace), client.MatchingLabelsSelector{Selector: chosen}); err != nil {
		return nil, aboutKind(err, restartKind, namespace, "")
	}
	list.SetGroupVersionKind(tidekeeperv1.SchemeGroupVersion.WithKind(restartKind + "List"))
	for i := range list.Items {
		list.Items[i].SetGroupVersionKind(tidekeeperv1.SchemeGroupVersion.WithKind(restartKind))
	}
	return list, nil
}

// getRestart returns a ScheduledRestart and a client to change it with.
func (a *app) getRestart(ctx context.Context, name string) (*tidekeeperv1.ScheduledRestart, client.Client, error) {
	c, err := a.client()
	if err != nil {
		return nil, nil, err
	}
	namespace, err := a.namespace(false)
	if err != nil {
		return nil, nil, err
	}
	r := &tidekeeperv1.ScheduledRestart{}
	if err := c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, r); err != nil {
		return nil, nil, aboutKind(err, restartKind, namespace, name)
	}
	r.SetGroupVersionKind(tidekeeperv1.SchemeGroupVersion.WithKind(restartKind))
	return r, c, nil
}

// lastSuccessBefore tells whether the last success was before a time, or there
// was none.
func lastSuccessBefore(r *tidekeeperv1.ScheduledRestart, limit time.Time) bool {
	return r.Status.LastSuccessfulTime == nil || r.Status.LastSuccessfulTime.Time.Before(limit)
}

// restartsTable is the list for people.
func restartsTable(items []tidekeeperv1.ScheduledRestart, namespaces, wide bool, now time.Time, local *time.Location) *table {
	t := &table{header: []string{"NAME", "TARGET", "SCHEDULE", "STATUS", "LAST", "OUTCOME", "SUCCESS", "NEXT"}}
	if namespaces {
		t.header = append([]string{"NAMESPACE"}, t.header...)
	}
	if wide {
		t.header = append(t.header, "ZONE", "FAILURES", "MESSAGE")
	}
	for i := range items {
		r := &items[i]
		status, statusHue, message := restartStatus(r)
		last, outcome, outcomeHue := lastOutcome(r, now)
		success := cell{"never", plain}
		if at := r.Status.LastSuccessfulTime; at != nil {
			success.text = ago(at.Time, now)
		}
		row := []cell{
			{r.Name, plain}, {r.Spec.TargetRef.Kind + "/" + r.Spec.TargetRef.Name, plain}, {r.Spec.Schedule, plain},
			{status, statusHue}, {last, plain}, {outcome, outcomeHue}, success, {nextWords(r, now, local), plain},
		}
		if namespaces {
			row = append([]cell{{r.Namespace, plain}}, row...)
		}
		if wide {
			row = append(row, cell{r.Spec.TimeZone, plain}, cell{fmt.Sprint(r.Status.ConsecutiveFailures), plain}, cell{message, plain})
		}
		t.rows = append(t.rows, row)
	}
	return t
}

// restartStatus is the reason of the condition Ready.
func restartStatus(r *tidekeeperv1.ScheduledRestart) (status string, h hue, message string) {
	ready := meta.FindStatusCondition(r.Status.Conditions, "Ready")
	switch {
	case ready == nil:
		return "Unknown", yellow, "no manager has looked at it yet"
	case ready.Status != "True":
		return ready.Reason, red, ready.Message
	case strings.HasPrefix(ready.Reason, "Target"), ready.Reason == "Budget":
		return ready.Reason, yellow, ready.Message
	default:
		return ready.Reason, plain, ready.Message
	}
}

// lastOutcome says what became of the last tick.
func lastOutcome(r *tidekeeperv1.ScheduledRestart, now time.Time) (last, outcome string, h hue) {
	if len(r.Status.History) == 0 {
		return "-", "-", plain
	}
	record := r.Status.History[0]
	outcome, h = outcomeWords(record)
	return ago(record.ScheduledTime.Time, now), outcome, h
}

// outcomeWords is an outcome with its reason.
func outcomeWords(record tidekeeperv1.RestartRecord) (string, hue) {
	text := string(record.Outcome)
	if record.Reason != "" {
		text += "/" + record.Reason
	}
	switch record.Outcome {
	case tidekeeperv1.OutcomeSucceeded:
		return text, green
	case tidekeeperv1.OutcomeFailed:
		return text, red
	default:
		return text, yellow
	}
}

// nextWords says when the restart is started next.
func nextWords(r *tidekeeperv1.ScheduledRestart, now time.Time, local *time.Location) string {
	switch {
	case r.Status.Active != nil:
		return "under way for " + ago(r.Status.Active.StartedTime.Time, now)
	case r.Status.NextScheduleTime == nil:
		return "-"
	default:
		return coming(r.Status.NextScheduleTime.Add(offsetOf(r)), now, local)
	}
}

// offsetOf is the place of a ScheduledRestart in its spread.
func offsetOf(r *tidekeeperv1.ScheduledRestart) time.Duration {
	return schedule.Spread(string(r.UID), time.Duration(r.Spec.SpreadSeconds)*time.Second)
}
