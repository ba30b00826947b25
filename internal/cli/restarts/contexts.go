// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package restarts

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/cli/cmdutil"
	"tidekeeper.dev/tidekeeper/internal/term"
	"tidekeeper.dev/tidekeeper/internal/view"
)

// clusterRestarts are the ScheduledRestarts of a cluster, and the options that they were read with.
// Each cluster has options of its own: the namespace of its context, and its workloads with several
// ScheduledRestarts.
type clusterRestarts struct {
	list    *tidekeeperv1.ScheduledRestartList
	options *listOptions
}

// sharedRestart is a ScheduledRestart and the options of its cluster, which have the Freezes and the
// other ScheduledRestarts of its workload.
type sharedRestart struct {
	restart tidekeeperv1.ScheduledRestart
	options *listOptions
}

func (c clusterRestarts) restarts() []sharedRestart {
	all := make([]sharedRestart, len(c.list.Items))
	for i := range all {
		all[i] = sharedRestart{c.list.Items[i], c.options}
	}
	return all
}

// runContexts lists the ScheduledRestarts of several clusters.
func (o *listOptions) runContexts(ctx context.Context) error {
	answers, err := cmdutil.AskContexts(ctx, o.Env, o.contexts.Names, o.readCluster)
	if err != nil {
		return err
	}
	rows, problems := cmdutil.Locate(answers, clusterRestarts.restarts), cmdutil.ProblemsOf(answers)
	if err := cmdutil.SortLocated(&o.output, rows, func(r *sharedRestart) runtime.Object { return &r.restart }); err != nil {
		return err
	}
	if !o.output.IsTable() {
		list := tidekeeperv1.SchemeGroupVersion.WithKind(restartKind.Name + "List")
		if err := cmdutil.PrintLocated(&o.output, o.Console.Out, list, rows, problems, (*sharedRestart).fields); err != nil {
			return err
		}
		return cmdutil.Unanswered(problems)
	}
	namespaces := o.namespacesDiffer(answers)
	t := o.contextsTable(rows, namespaces, o.Now())
	nothing := "no scheduled restarts"
	if o.olderThan.Duration > 0 || o.name != "" || !o.selector.Empty() {
		nothing += " that match"
	}
	cmdutil.AddOthers(t, answers, rows, nothing)
	layout := t.Layout(o.Console.Screen, nil)
	if err := t.WriteLayout(o.Console.Out, o.Console.Screen, layout); err != nil {
		return err
	}
	if !o.watch {
		return cmdutil.Unanswered(problems)
	}
	return o.followContexts(ctx, answers, namespaces, layout)
}

// ofCluster returns the options for a cluster.
func (o *listOptions) ofCluster(e *cmdutil.Env) (*listOptions, error) {
	one := *o
	one.Env, one.cmd, one.looks = e, nil, map[string]look{} // Clusters are read concurrently, and a cobra.Command is not safe for that.
	var err error
	one.namespace, err = e.Kubeconfig.Namespace(o.allNamespaces)
	return &one, err
}

// readCluster reads the ScheduledRestarts of a cluster.
func (o *listOptions) readCluster(ctx context.Context, e *cmdutil.Env) (read clusterRestarts, err error) {
	if read.options, err = o.ofCluster(e); err != nil {
		return read, err
	}
	c, err := e.Kubeconfig.Client()
	if err != nil {
		return read, err
	}
	if read.list, err = read.options.list(ctx, c); err != nil {
		return read, err
	}
	if o.output.IsTable() {
		if err := read.options.lookAround(ctx, c, read.list.Items); err != nil {
			return read, err
		}
	}
	return read, read.options.noteOutdated(ctx, c, read.list.Items)
}

// namespacesDiffer reports whether the rows need a column for the namespace.
func (o *listOptions) namespacesDiffer(answers []cmdutil.Answer[clusterRestarts]) bool {
	namespaces := map[string]bool{}
	for _, a := range answers {
		if a.Problem == "" {
			namespaces[a.Value.options.namespace] = true
		}
	}
	return o.allNamespaces || len(namespaces) > 1
}

// fields returns the ScheduledRestart for -o json and -o yaml.
func (r *sharedRestart) fields() (map[string]any, error) {
	return runtime.DefaultUnstructuredConverter.ToUnstructured(&r.restart)
}

// contextsTable returns the table of the ScheduledRestarts of several clusters.
func (o *listOptions) contextsTable(rows []cmdutil.Located[sharedRestart], namespaces bool, now time.Time) *term.Table {
	shown := make([]view.Restart, len(rows))
	for i := range rows {
		r := &rows[i].Value
		shown[i] = r.options.restart(&r.restart, now)
	}
	t := o.output.Table(listTable(shown, namespaces, o.output.Wide(), now, o.Local))
	cmdutil.AddContexts(t, rows)
	return t
}

// followContexts prints a line for each change in any of the clusters.
func (o *listOptions) followContexts(ctx context.Context, answers []cmdutil.Answer[clusterRestarts], namespaces bool, layout *term.Layout) error {
	followers := make([]*cmdutil.Follower, len(answers))
	for i, a := range answers {
		f := &cmdutil.Follower{Context: a.Context, Kind: restartKind.Name, Empty: emptyList, Layout: layout}
		one := a.Value.options
		if a.Problem == "" {
			f.List = a.Value.list
		} else {
			var err error
			if one, err = o.ofCluster(o.ForContext(a.Context)); err != nil {
				return err
			}
		}
		if !namespaces {
			f.Namespace = one.namespace
		}
		f.Options = client.ListOptions{Namespace: one.namespace, LabelSelector: o.selector}
		f.Table = func(object client.Object, now time.Time) *term.Table {
			row := sharedRestart{*object.(*tidekeeperv1.ScheduledRestart), one}
			if c, err := one.Kubeconfig.Client(); err == nil {
				one.lookAgain(ctx, c, object.GetNamespace())
			}
			return o.contextsTable([]cmdutil.Located[sharedRestart]{{Context: a.Context, Value: row}}, namespaces, now)
		}
		followers[i] = f
	}
	return o.FollowContexts(ctx, followers)
}
