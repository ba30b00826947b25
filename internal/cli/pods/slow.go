// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package pods

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"tidekeeper.dev/tidekeeper/internal/cli/cmdutil"
	"tidekeeper.dev/tidekeeper/internal/kube/pages"
	"tidekeeper.dev/tidekeeper/internal/term"
	"tidekeeper.dev/tidekeeper/internal/view"
)

// slowOptions holds the flags and arguments of pods slow.
type slowOptions struct {
	*cmdutil.Env
	selection
	top     int
	since   cmdutil.Duration
	byStage bool
	// ready is the value of --ready. It is only used if readyGiven is set; otherwise, pods are
	// selected regardless of readiness.
	ready, readyGiven bool
	name              string
	output            cmdutil.DataOutput
}

func newSlowCommand(e *cmdutil.Env) *cobra.Command {
	o := &slowOptions{Env: e}
	cmd := &cobra.Command{
		Use:   "slow",
		Short: "The pods that took longest to start, and why",
		Long: `slow lists the pods that took longest from creation to ready, including pods that are
still starting, with the slowest stage and the reason for the wait. Pods that have ended
or are being deleted are left out.

The reason for a wait is in the pod's events, which are kept for an hour; they are read
for the first 20 rows.

A pod keeps only the last change of each condition. A pod that became ready again although
its containers were ready all the time, such as after an outage of its node, has taken
until its containers were ready. If its containers became ready again, such as after a
restart, it appears to have taken until then: --since leaves out older pods. Durations are in whole seconds, and can be off by one
either way.

With --by-stage it shows the durations of each stage over all pods instead: a histogram,
the median and the maximum. Stages that a pod has not completed, or whose end it does not
record, are left out.`,
		Example: `  kubectl tide pods slow --top 20 -A
  kubectl tide pods slow -A --since 1h        # created in the last hour
  kubectl tide pods slow -A --ready=false     # only those that are still starting
  kubectl tide pods slow -A --by-stage
  kubectl tide pods slow -l app=web -o name | xargs kubectl tide pods timeline`,
		Args: cmdutil.NoArguments,
		RunE: cmdutil.RunE(o),
	}
	o.addTo(cmd)
	cmd.Flags().IntVar(&o.top, "top", 20, "number of pods to list")
	cmd.Flags().BoolVar(&o.byStage, "by-stage", false, "show the durations of each stage over all pods, instead of the slowest pods")
	cmd.Flags().Var(&o.since, "since", "only pods created within this time, such as 1h or 7d")
	cmd.Flags().BoolVar(&o.ready, "ready", false, "only pods that are ready; with --ready=false, only those that are not")
	cmd.Flags().StringVar(&o.name, "name", "", "only pods with this text in NAMESPACE/NAME, in upper or lower case")
	o.output.Shows([]view.Startup{}, []view.StageSummary{}).AddTo(cmd, "name", "wide")
	return cmd
}

// Complete implements [cmdutil.Options].
func (o *slowOptions) Complete(cmd *cobra.Command, _ []string) error {
	o.readyGiven = cmd.Flags().Changed("ready")
	return o.complete(o.Env, nil)
}

// Validate implements [cmdutil.Options].
func (o *slowOptions) Validate() error {
	if o.top < 1 {
		return fmt.Errorf("--top %d: write 1 or more", o.top)
	}
	if o.byStage && o.output.Format == "name" {
		return errors.New("--by-stage has no names: write -o json or yaml, or nothing")
	}
	return o.output.Validate()
}

// Run implements [cmdutil.Options].
func (o *slowOptions) Run(ctx context.Context) error {
	c, err := o.Kubeconfig.Client()
	if err != nil {
		return err
	}
	if o.byStage {
		return o.stages(ctx, c)
	}
	startups, pods, err := o.slowest(ctx, c)
	if err != nil {
		return err
	}
	if o.output.Format != "name" {
		o.explain(ctx, c, startups)
	}
	if done, err := o.output.Print(o.Console.Out, startups); done {
		return err
	}
	if len(startups) == 0 {
		o.Console.NothingFound("pods", o.namespace, o.narrowed() || o.since.Duration > 0 || o.readyGiven || o.name != "" || pods > 0)
		return nil
	}
	if o.output.Format == "name" {
		for _, s := range startups {
			fmt.Fprintln(o.Console.Out, "pod/"+s.Pod)
		}
		return nil
	}
	return o.Console.Write(slowTable(startups, o.allNamespaces, o.output.Wide(), o.Now()))
}

// slowest returns the o.top slowest of the start-ups that match the flags, and the number of pods
// read.
func (o *slowOptions) slowest(ctx context.Context, c client.Client) (startups []view.Startup, pods int, err error) {
	startups = []view.Startup{}
	err = o.each(ctx, c, func(pod *corev1.Pod) {
		pods++
		s := view.StartupOf(pod, nil, o.Now())
		if !o.counts(&s) {
			return
		}
		if startups = append(startups, s); len(startups) >= 2*o.top+pages.Size {
			startups = view.Slowest(startups, o.top)
		}
	})
	return view.Slowest(startups, o.top), pods, err
}

// counts reports whether a start-up matches the flags --ready, --name and --since. Terminated pods
// never match.
func (o *slowOptions) counts(s *view.Startup) bool {
	if o.readyGiven && s.Ready != o.ready || !view.Matches(o.name, s.Namespace+"/"+s.Pod) {
		return false
	}
	return !s.Ended && (o.since.Duration == 0 || s.Created.After(o.Now().Add(-o.since.Duration)))
}

// mostExplained is the maximum number of pods whose events are read. Each pod takes one request.
const mostExplained = 20

// explain reads the pods' events to find the causes of waits that the pods themselves do not show.
func (o *slowOptions) explain(ctx context.Context, c client.Client, startups []view.Startup) {
	for i := range startups {
		if i == mostExplained {
			return
		}
		s := &startups[i]
		if s.Slowest == nil || s.Slowest.Known {
			continue
		}
		list := &corev1.EventList{}
		about := client.MatchingFields{"involvedObject.kind": podKind.Name, "involvedObject.name": s.Pod, "involvedObject.uid": s.UID}
		if err := c.List(ctx, list, client.InNamespace(s.Namespace), about); err != nil {
			return // If the events cannot be read, the causes stay unknown.
		}
		s.Explain(list.Items)
	}
}

// slowTable returns a table with a row for each start-up. The parameter namespaces adds a column
// for the namespace, and wide adds the columns of -o wide.
func slowTable(startups []view.Startup, namespaces, wide bool, now time.Time) *term.Table {
	t := &term.Table{Columns: []term.Column{
		{Header: "NAME", Name: true}, {Header: "READY", Drop: 2}, {Header: "TOOK"}, {Header: "SLOWEST"}, {Header: "OF THAT", Drop: 3}, {Header: "RESTARTS", Drop: 4},
	}}
	if namespaces {
		t.Columns = append([]term.Column{{Header: "NAMESPACE", Name: true}}, t.Columns...)
	}
	if wide {
		t.Columns = append(t.Columns, term.Column{Header: "NODE", Name: true, Drop: 5}, term.Column{Header: "AGE", Drop: 6})
	}
	t.Columns = append(t.Columns, term.Column{Header: "WAITED FOR", Text: 20})
	for _, s := range startups {
		t.Rows = append(t.Rows, slowRow(s, namespaces, wide, now))
	}
	return t
}

func slowRow(s view.Startup, namespaces, wide bool, now time.Time) []term.Cell {
	ready := term.Text("yes")
	if !s.Ready {
		ready = term.Painted(term.Yellow, "not yet")
	}
	stage, took, cause := "-", "-", ""
	if s.Slowest != nil {
		stage, took, cause = view.StageText(s.Slowest.Stage), view.FormatLength(view.Seconds(s.Slowest.Seconds)), s.Slowest.Cause
	}
	row := []term.Cell{
		term.Text(s.Pod), ready, term.Text(view.FormatLength(view.Seconds(s.Seconds))), term.Text(stage), term.Text(took), term.Text(fmt.Sprint(s.Restarts)),
	}
	if namespaces {
		row = append([]term.Cell{term.Text(s.Namespace)}, row...)
	}
	if wide {
		row = append(row, term.Text(cmp.Or(s.Node, "-")), term.Text(term.Ago(s.Created, now)))
	}
	return append(row, term.Text(cause))
}
