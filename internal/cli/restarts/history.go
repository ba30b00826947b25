// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package restarts

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/duration"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/cli/cmdutil"
	"tidekeeper.dev/tidekeeper/internal/term"
	"tidekeeper.dev/tidekeeper/internal/view"
)

// historyOptions holds the flags and arguments of restarts history.
type historyOptions struct {
	*cmdutil.Env
	output cmdutil.DataOutput

	ref reference
}

func newHistoryCommand(e *cmdutil.Env) *cobra.Command {
	o := &historyOptions{Env: e}
	cmd := &cobra.Command{
		Use:   "history NAME | TYPE/NAME",
		Short: "The outcomes of past ticks",
		Long: `history shows the outcomes of past ticks, the latest first: the time of each, on the
clock of this machine, how long the restart waited and took, and why it did not succeed.
READY IN is how long the new pods took to become ready: the median and, as WORST, the
slowest pod, with the difference to the previous restart in parentheses.`,
		Example: `  kubectl tide restarts history web -n shop
  kubectl tide restarts history web -o json | jq '.[0].outcome'`,
		Args:              cmdutil.OneName,
		ValidArgsFunction: e.Kubeconfig.CompleteOne(emptyList),
		RunE:              cmdutil.RunE(o),
	}
	o.output.Shows([]tidekeeperv1.RestartRecord{}).AddTo(cmd)
	return cmd
}

// Complete implements [cmdutil.Options].
func (o *historyOptions) Complete(_ *cobra.Command, args []string) error {
	refs, err := parseReferences(args)
	if err == nil {
		o.ref = refs[0]
	}
	return err
}

// Validate implements [cmdutil.Options].
func (o *historyOptions) Validate() error { return o.output.Validate() }

// Run implements [cmdutil.Options].
func (o *historyOptions) Run(ctx context.Context) error {
	r, err := o.read(ctx)
	if err != nil {
		return err
	}
	records := r.Status.History
	if records == nil {
		records = []tidekeeperv1.RestartRecord{}
	}
	if done, err := o.output.Print(o.Console.Out, records); done {
		return err
	}
	c, err := o.Kubeconfig.Client()
	if err != nil {
		return err
	}
	var unobserved view.Unobserved
	unobserved.AddRestart(r, o.Now())
	if err := o.NoteOutdated(ctx, c, unobserved); err != nil {
		return err
	}
	entries := view.HistoryOf(r, o.Now())
	if len(entries) == 0 {
		o.Console.Note(r.Name + " has not run yet" + nextStart(r, o.Now(), o.Local) + ".")
		return nil
	}
	return o.Console.Write(historyTable(entries, o.Local))
}

// read returns the ScheduledRestart that the argument names, either by its own name or by the name
// of its workload.
func (o *historyOptions) read(ctx context.Context) (*tidekeeperv1.ScheduledRestart, error) {
	c, err := o.Kubeconfig.Client()
	if err != nil {
		return nil, err
	}
	namespace, err := o.Kubeconfig.Namespace(false)
	if err != nil {
		return nil, err
	}
	if o.ref.workload == "" {
		return getRestart(ctx, c, namespace, o.ref.name)
	}
	list, err := listRestarts(ctx, c, client.InNamespace(namespace))
	if err != nil {
		return nil, cmdutil.AboutKind(err, restartKind.Name, namespace, "")
	}
	found, err := pick(list.Items, []reference{o.ref}, namespace)
	if err != nil {
		return nil, err
	}
	if len(found) > 1 {
		return nil, fmt.Errorf("%s/%s is restarted by %s: name one of them", o.ref.workload, o.ref.name, namesOf(found))
	}
	return &found[0], nil
}

// historyTable returns a table with a row for each past tick (scheduled time of a restart), and a
// row for the restart in progress, if any.
func historyTable(entries []view.HistoryEntry, local *time.Location) *term.Table {
	t := &term.Table{Columns: []term.Column{
		{Header: "TICK"}, {Header: "TRIGGER", Drop: 3}, {Header: "OUTCOME", Name: true}, {Header: "WAITED", Drop: 2}, {Header: "TOOK"}, {Header: "PODS", Drop: 4},
		{Header: "READY IN", Drop: 1}, {Header: "WORST", Drop: 5}, {Header: "MESSAGE", Text: 20, Drop: 6},
	}}
	for _, entry := range entries {
		pods := "-"
		if entry.Pods != nil {
			pods = fmt.Sprint(*entry.Pods)
		}
		median, worst := entry.StartupTexts()
		t.Rows = append(t.Rows, []term.Cell{
			term.Text(entry.Tick.In(local).Format("2006-01-02 15:04:05 MST")), term.Text(entry.Trigger),
			term.Painted(cmdutil.ColorOf(entry.Outcome.Severity), entry.Outcome.Text),
			lengthCell(entry.Waited), lengthCell(entry.Took), term.Text(pods), term.Text(median), term.Text(worst), term.Text(entry.Message),
		})
	}
	return t
}

func lengthCell(length *time.Duration) term.Cell {
	if length == nil {
		return term.Text("-")
	}
	return term.Text(duration.HumanDuration(*length))
}
