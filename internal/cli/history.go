// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/duration"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
)

func (a *app) historyCommand() *cobra.Command {
	var format data
	cmd := &cobra.Command{
		Use:   "history NAME",
		Short: "What became of the ticks of a scheduled restart",
		Long: `history shows what became of the ticks, the latest first: when each was, on the
clock of this machine, how long it waited and took, and why it did not succeed.
READY IN is how long the new pods took to become ready, the median and the WORST of
them, and in parentheses how much longer that was than at the restart before.`,
		Example: `  kubectl tide restarts history web -n shop
  kubectl tide restarts history web -o json | jq '.[0].outcome'`,
		Args:              oneName,
		ValidArgsFunction: a.nameOfRestart(),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := format.check(); err != nil {
				return err
			}
			r, _, err := a.getRestart(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			records := r.Status.History
			if records == nil {
				records = []tidekeeperv1.RestartRecord{}
			}
			if done, err := format.print(a.out, records); done {
				return err
			}
			if len(records) == 0 && r.Status.Active == nil {
				fmt.Fprintf(a.errOut, "No tick of %s has been decided yet.\n", r.Name)
				return nil
			}
			return historyTable(r, a.now(), a.local).writeTo(a.out, a.screen)
		},
	}
	format.addTo(cmd)
	return cmd
}

// historyTable is the history for people, with the restart that is under way on
// top.
func historyTable(r *tidekeeperv1.ScheduledRestart, now time.Time, local *time.Location) *table {
	t := &table{header: []string{"TICK", "TRIGGER", "OUTCOME", "WAITED", "TOOK", "PODS", "READY IN", "WORST", "MESSAGE"}}
	if active := r.Status.Active; active != nil {
		t.rows = append(t.rows, []cell{
			{tickWords(active.ScheduledTime.Time, local), plain}, {string(active.Trigger), plain}, {"Restarting", plain},
			{between(active.ScheduledTime.Time, active.StartedTime.Time), plain}, {between(active.StartedTime.Time, now), plain}, {"-", plain},
			{"-", plain}, {"-", plain}, {"", plain},
		})
	}
	for _, record := range r.Status.History {
		outcome, h := outcomeWords(record)
		waited, took, pods := "-", "-", "-"
		if record.StartedTime != nil {
			waited = between(record.ScheduledTime.Time, record.StartedTime.Time)
			took = between(record.StartedTime.Time, record.CompletedTime.Time)
		}
		if record.Outcome == tidekeeperv1.OutcomeSucceeded {
			pods = fmt.Sprint(record.Pods)
		}
		median, worst := startupWords(record)
		message := record.Message
		if n := record.EarlierTicks; n > 0 {
			if message != "" {
				message += "; "
			}
			message += "so were " + plural(int(n), "tick") + " before it"
			if n >= 1000 {
				message += ", or more"
			}
		}
		t.rows = append(t.rows, []cell{
			{tickWords(record.ScheduledTime.Time, local), plain}, {string(record.Trigger), plain}, {outcome, h},
			{waited, plain}, {took, plain}, {pods, plain},
			{median, plain}, {worst, plain}, {message, plain},
		})
	}
	return t
}

// startupWords says how long the new pods of a restart took to become ready, and
// how many of them are counted if those are not all.
func startupWords(record tidekeeperv1.RestartRecord) (median, worst string) {
	s := record.PodStartup
	if s == nil {
		return "-", "-"
	}
	median = withChange(s.MedianSeconds, s.MedianChangeSeconds)
	if s.Pods != record.Pods {
		median += ", " + plural(int(s.Pods), "pod")
	}
	return median, withChange(s.MaxSeconds, s.MaxChangeSeconds)
}

// withChange is a length of time in seconds, and how much longer it is than
// before.
func withChange(length int32, change *int32) string {
	words := func(n int32) string { return duration.HumanDuration(time.Duration(n) * time.Second) }
	switch {
	case change == nil:
		return words(length)
	case *change < 0:
		return words(length) + " (-" + words(-*change) + ")"
	default:
		return words(length) + " (+" + words(*change) + ")"
	}
}

// tickWords is a tick, exactly.
func tickWords(t time.Time, in *time.Location) string {
	return t.In(in).Format("2006-01-02 15:04:05 MST")
}

// between is how long it is from one time to another; timestamps are in whole
// seconds.
func between(from, to time.Time) string { return duration.HumanDuration(max(0, to.Sub(from))) }
