// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package restarts

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/cli/cmdutil"
	"tidekeeper.dev/tidekeeper/internal/restart/forecast"
	"tidekeeper.dev/tidekeeper/internal/term"
	"tidekeeper.dev/tidekeeper/internal/view"
)

// listOptions holds the flags and arguments of the command restarts.
type listOptions struct {
	cmdutil.Listing
	allNamespaces bool
	olderThan     cmdutil.Duration
	name          string

	cmd       *cobra.Command
	refs      []reference
	namespace string
	shared    view.Shared
	// looks caches the Freezes and workloads of each namespace, keyed by namespace.
	looks map[string]look
}

func newListCommand(e *cmdutil.Env) *cobra.Command {
	o := &listOptions{Listing: cmdutil.Listing{Env: e, Kind: restartKind.Name, Plural: "scheduled restarts", Empty: emptyList}}
	cmd := &cobra.Command{
		Use:     "restarts [NAME | TYPE/NAME]...",
		Aliases: []string{"restart", "srestart", "eru", "erus", "scheduledrestart", "scheduledrestarts"},
		Short:   "Scheduled restarts: last outcomes and next starts",
		Long: `restarts lists scheduled restarts: the status of each, the outcome of its last tick, how
long ago it last succeeded, and when it starts next, on the clock of this machine. NEXT
also shows whether a Freeze delays that start, whether an eviction of the restart under
way is refused, and why the restart would have to wait for the workload if it were due now,
such as "now TargetPaused": unless that changes, the tick is missed at its deadline. Whether
the budget has a slot by then is shown by kubectl tide restarts next and restarts forecast.

With --contexts it lists the restarts of several clusters, in the namespace of each
context or of -n. A cluster that does not answer within ten seconds, or
--request-timeout, has a line with the reason, and the exit code is 1.`,
		Example: `  kubectl tide restarts -n shop
  kubectl tide restarts -A -o wide
  kubectl tide restarts -n shop -w
  kubectl tide restarts -A --contexts prod,edge
  kubectl tide restarts -A --older-than 24h           # with a pod older than a day
  kubectl tide restarts -n shop --older-than 7d -o name | xargs -r kubectl tide restarts now -n shop
  kubectl tide restarts deployment/web -n shop        # the restarts of this workload`,
		ValidArgsFunction: e.Kubeconfig.CompleteNames(emptyList),
		RunE:              cmdutil.RunE(o),
	}
	cmd.Flags().BoolVarP(&o.allNamespaces, "all-namespaces", "A", false, "list restarts in all namespaces")
	cmd.Flags().Var(&o.olderThan, "older-than", "only restarts of workloads with a pod older than this, such as 24h or 7d; for workloads without pods, the last success counts")
	cmd.Flags().StringVar(&o.name, "name", "", "only restarts with this text in NAMESPACE/NAME or in their target, in upper or lower case")
	o.AddTo(cmd, "only restarts with these labels, such as app=web")
	return cmd
}

// Complete implements [cmdutil.Options].
func (o *listOptions) Complete(cmd *cobra.Command, args []string) (err error) {
	o.cmd = cmd
	if o.refs, err = parseReferences(args); err != nil {
		return err
	}
	if o.allNamespaces && *o.Kubeconfig.Flags.Namespace != "" {
		o.Console.Note("note: -A is for all namespaces; -n " + *o.Kubeconfig.Flags.Namespace + " is ignored")
	}
	err = o.CompleteFlags(cmd)
	if o.Filtered = o.Filtered || o.olderThan.Duration > 0 || o.name != ""; err != nil || o.Contexts.Given() {
		return err
	}
	o.namespace, err = o.Kubeconfig.Namespace(o.allNamespaces)
	return err
}

// Validate implements [cmdutil.Options].
func (o *listOptions) Validate() error {
	if err := o.ValidateFlags(); err != nil {
		return err
	}
	switch {
	case len(o.refs) > 0 && (o.allNamespaces || o.LabelSelector != ""):
		return fmt.Errorf("names cannot be combined with -A or -l")
	case len(o.refs) > 0 && o.Watch:
		return fmt.Errorf("-w follows all restarts, or those that -l selects, and takes no names")
	case o.Watch && !o.Output.IsTable():
		return fmt.Errorf("-w only prints tables: kubectl get scheduledrestarts -w -o %s follows the objects", o.Output.Format())
	case o.Watch && o.name != "":
		return fmt.Errorf("-w and --name cannot be combined: -w follows all restarts, or those that -l selects")
	case o.Watch && o.olderThan.Duration > 0:
		return fmt.Errorf("-w and --older-than cannot be combined: pods age without a change that -w could follow")
	default:
		return nil
	}
}

// Run implements [cmdutil.Options].
func (o *listOptions) Run(ctx context.Context) error {
	if o.Contexts.Given() {
		return o.clusters().Print(ctx, &o.Listing)
	}
	c, err := o.Kubeconfig.Client()
	if err != nil {
		return err
	}
	list, err := o.list(ctx, c)
	if err != nil {
		return err
	}
	if err := o.Output.Sort(list); err != nil {
		return err
	}
	if !o.Output.IsTable() {
		return o.Output.Print(list, o.Console.Out)
	}
	if err := o.lookAround(ctx, c, list.Items); err != nil {
		return err
	}
	return o.Print(ctx, c, o.table(list.Items, o.Now()), o.unobserved(list.Items), &cmdutil.Follower{
		Namespace: o.namespace, List: list, Options: client.ListOptions{Namespace: o.namespace, LabelSelector: o.Selector},
		Table: func(object client.Object, now time.Time) *term.Table {
			r := object.(*tidekeeperv1.ScheduledRestart)
			o.lookAgain(ctx, c, r.Namespace)
			return o.table([]tidekeeperv1.ScheduledRestart{*r}, now)
		},
	})
}

// unobserved counts the ScheduledRestarts with a change, a restart request or a due tick (scheduled
// time) that no manager has observed, so that their status may be outdated.
func (o *listOptions) unobserved(items []tidekeeperv1.ScheduledRestart) (unobserved view.Unobserved) {
	for i := range items {
		unobserved.AddRestart(&items[i], o.Now())
	}
	return unobserved
}

// list reads the ScheduledRestarts that the arguments and flags select.
func (o *listOptions) list(ctx context.Context, c client.Client) (*tidekeeperv1.ScheduledRestartList, error) {
	read := listShown
	if o.Output.NeedsAll() {
		read = listRestarts
	}
	list, err := read(ctx, c, client.InNamespace(o.namespace), client.MatchingLabelsSelector{Selector: o.Selector})
	if err != nil {
		return nil, cmdutil.AboutKind(err, restartKind.Name, o.namespace, "")
	}
	o.shared = view.SharedTargets(list.Items)
	if len(o.refs) > 0 {
		if list.Items, err = pick(list.Items, o.refs, o.namespace); err != nil {
			return nil, cmdutil.MissingName(o.cmd, o.refs[0].name, err)
		}
	}
	list.Items = slices.DeleteFunc(list.Items, func(r tidekeeperv1.ScheduledRestart) bool {
		return !view.Matches(o.name, r.Namespace+"/"+r.Name+" "+view.TargetOf(&r))
	})
	if o.olderThan.Duration > 0 {
		if list.Items, err = o.older(ctx, c, list.Items); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// older returns the ScheduledRestarts whose workload has a pod that is older than --older-than. If
// no pods of the workload are known, the time since the last successful restart counts instead.
func (o *listOptions) older(ctx context.Context, c client.Client, items []tidekeeperv1.ScheduledRestart) ([]tidekeeperv1.ScheduledRestart, error) {
	ages, err := readPodAges(ctx, c, namespacesOf(items))
	if err != nil {
		return nil, err
	}
	if len(ages.unread) > 0 {
		o.Console.Note("note: you may not list the pods of " + strings.Join(ages.unread, ", ") + ": there, only the last success counts")
	}
	limit := o.Now().Add(-o.olderThan.Duration)
	return slices.DeleteFunc(items, func(r tidekeeperv1.ScheduledRestart) bool {
		if oldest, known := ages.oldest[forecast.KeyOf(r.Namespace, r.Spec.TargetRef)]; known {
			return !oldest.Before(limit)
		}
		return !view.LastSuccessBefore(&r, limit)
	}), nil
}

func (o *listOptions) table(items []tidekeeperv1.ScheduledRestart, now time.Time) *term.Table {
	shown := make([]view.Restart, 0, len(items))
	for i := range items {
		shown = append(shown, o.restart(&items[i], now))
	}
	return o.Output.Table(listTable(shown, o.allNamespaces, o.Output.Wide(), now, o.Local))
}

// listTable returns a table with a row for each ScheduledRestart. The parameter namespaces adds a
// column for the namespace, and wide adds the columns of -o wide.
func listTable(items []view.Restart, namespaces, wide bool, now time.Time, local *time.Location) *term.Table {
	t := &term.Table{Columns: []term.Column{
		{Header: "NAME", Name: true}, {Header: "TARGET", Name: true, Drop: 9}, {Header: "SCHEDULE", Drop: 7}, {Header: "STATUS", Name: true},
		{Header: "LAST", Drop: 8}, {Header: "OUTCOME", Drop: 5}, {Header: "SUCCESS", Drop: 6}, {Header: "NEXT (" + term.Zone(now, local) + ")"},
	}}
	if namespaces {
		t.Columns = append([]term.Column{{Header: "NAMESPACE", Name: true}}, t.Columns...)
	}
	if wide {
		t.Columns = append(t.Columns, term.Column{Header: "ZONE", Drop: 10}, term.Column{Header: "FAILURES", Drop: 11}, term.Column{Header: "MESSAGE", Text: 20, Drop: 12})
	}
	for _, r := range items {
		t.Rows = append(t.Rows, listRow(r, namespaces, wide, now, local))
	}
	return t
}

func listRow(r view.Restart, namespaces, wide bool, now time.Time, local *time.Location) []term.Cell {
	schedule := term.Text(cmp.Or(r.Schedule, "-"))
	last, outcome, success := term.Text("-"), term.Text("-"), term.Text("never")
	if r.LastTick != nil {
		last.Text = term.Ago(*r.LastTick, now)
		outcome = term.Painted(cmdutil.ColorOf(r.Outcome.Severity), r.Outcome.Text)
	}
	if r.LastSuccess != nil {
		success.Text = term.Ago(*r.LastSuccess, now)
	}
	row := []term.Cell{
		term.Text(r.Name), term.Text(r.Target), schedule, term.Painted(cmdutil.ColorOf(r.Status.Severity), r.Status.Reason),
		last, outcome, success, nextCell(r, now, local),
	}
	if namespaces {
		row = append([]term.Cell{term.Text(r.Namespace)}, row...)
	}
	if wide {
		row = append(row, term.Text(r.TimeZone), term.Text(fmt.Sprint(r.Failures)), term.Text(r.Status.Message+workloadText(r)+sharedText(r)))
	}
	return row
}

// nextCell formats the time of the next start, and the reasons why the restart may have to wait.
func nextCell(r view.Restart, now time.Time, local *time.Location) term.Cell {
	switch {
	case r.ActiveSince != nil:
		text := "under way for " + term.Ago(*r.ActiveSince, now)
		if r.Refused != "" {
			text += ", an eviction is refused"
		}
		return term.Text(text)
	case r.NextStart == nil:
		return term.Text("-")
	}
	c := term.Cell{Text: term.Coming(*r.NextStart, now, local), Short: term.Moment(*r.NextStart, now, local)}
	if !r.NextStart.After(now) {
		c.Short = "due"
	}
	if r.Spread {
		c.Text += ", spread +" + r.Offset.String()
	}
	text := r.Frozen.Text(func(t time.Time) string { return term.Moment(t, now, local) })
	if r.Workload != nil {
		text += ", now " + r.Workload.Reason
	}
	c.Text, c.Short = c.Text+text, c.Short+text
	return c
}

// workloadText explains why the workload's current state would delay a restart. It returns "" if
// the state would not delay a restart.
func workloadText(r view.Restart) string {
	if r.Workload == nil {
		return ""
	}
	return "; now " + r.Workload.Message
}

// sharedText lists the names of the other ScheduledRestarts of the same workload, as a phrase to
// append to a message.
func sharedText(r view.Restart) string {
	if len(r.AlsoBy) == 0 {
		return ""
	}
	return "; also restarted by " + strings.Join(r.AlsoBy, ", ")
}
