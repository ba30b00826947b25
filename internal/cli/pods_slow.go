// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"
)

func (a *app) slowCommand() *cobra.Command {
	var flags podFlags
	var format data
	var since span
	top := 20
	cmd := &cobra.Command{
		Use:   "slow",
		Short: "The slowest starters of the pods that there are",
		Long: `slow lists the pods that took longest from their creation to being ready, those
that are still on their way among them, with the slowest stage and what it waited
for. Pods that have ended or are being deleted are left out.

A pod keeps only the last change of a condition: one that ceased to be ready and
became ready again, on a node that was not ready for a while or after a restart,
looks as if it had taken so long. --since leaves out those that were created
before. Lengths are in whole seconds, and can be off by one either way.`,
		Example: `  kubectl tide pods slow --top 20 -A
  kubectl tide pods slow -A --since 1h        # of the last hour
  kubectl tide pods slow -l app=web -o name | xargs kubectl tide pods timeline`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := format.check(); err != nil {
				return err
			}
			if top < 1 {
				return fmt.Errorf("--top %d: write 1 or more", top)
			}
			choice, err := a.choosePods(flags, nil)
			if err != nil {
				return err
			}
			c, err := a.client()
			if err != nil {
				return err
			}
			pods, err := a.listPods(cmd.Context(), c, choice)
			if err != nil {
				return err
			}
			startups := []startup{}
			for i := range pods {
				s := startupOf(&pods[i], nil, a.now())
				if !s.Ended && (since == 0 || s.Created.After(a.now().Add(-time.Duration(since)))) {
					startups = append(startups, s)
				}
			}
			startups = slowest(startups, top)
			if done, err := format.print(a.out, startups); done {
				return err
			}
			if len(startups) == 0 {
				a.sayNothingFound("pods", flags.all, choice.narrowed() || since > 0 || len(pods) > 0)
				return nil
			}
			if format.format == "name" {
				for _, s := range startups {
					fmt.Fprintln(a.out, "pod/"+s.Pod)
				}
				return nil
			}
			return slowTable(startups, flags.all, format.format == "wide", a.now()).writeTo(a.out, a.screen)
		},
	}
	flags.addTo(cmd)
	cmd.Flags().IntVar(&top, "top", top, "how many")
	cmd.Flags().Var(&since, "since", "only those created within this time, such as 1h or 7d")
	format.addTo(cmd, "name", "wide")
	return cmd
}

// slowest returns those that took longest, the slowest first.
func slowest(startups []startup, top int) []startup {
	slices.SortStableFunc(startups, func(a, b startup) int {
		return cmp.Or(cmp.Compare(b.Seconds, a.Seconds), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Pod, b.Pod))
	})
	return startups[:min(top, len(startups))]
}

// slowTable is the list for people.
func slowTable(startups []startup, namespaces, wide bool, now time.Time) *table {
	t := &table{header: []string{"NAME", "READY", "TOOK", "SLOWEST", "OF THAT", "RESTARTS"}, uncut: 1}
	if namespaces {
		t.header, t.uncut = append([]string{"NAMESPACE"}, t.header...), 2
	}
	if wide {
		t.header = append(t.header, "NODE", "AGE")
	}
	t.header = append(t.header, "WAITED FOR")
	for _, s := range startups {
		ready := cell{"yes", plain}
		if !s.Ready {
			ready = cell{"not yet", yellow}
		}
		stage, took, cause := "-", "-", ""
		if s.Slowest != nil {
			stage, took, cause = stageWords(s.Slowest.Stage), lengthWords(seconds(s.Slowest.Seconds)), s.Slowest.Cause
		}
		row := []cell{
			{s.Pod, plain}, ready, {lengthWords(seconds(s.Seconds)), plain},
			{stage, plain}, {took, plain}, {fmt.Sprint(s.Restarts), plain},
		}
		if namespaces {
			row = append([]cell{{s.Namespace, plain}}, row...)
		}
		if wide {
			row = append(row, cell{cmp.Or(s.Node, "-"), plain}, cell{ago(s.Created, now), plain})
		}
		t.rows = append(t.rows, append(row, cell{cause, plain}))
	}
	return t
}
