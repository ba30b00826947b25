// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package pools

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/capacity"
	"tidekeeper.dev/tidekeeper/internal/cli/cmdutil"
	"tidekeeper.dev/tidekeeper/internal/term"
)

// clusterPools are the pools of a cluster, and the usage of their nodes if it is shown.
type clusterPools struct {
	list *tidekeeperv1.NodePoolList
	used []*capacity.Used
}

// usedPool is a pool with the usage of its nodes; nil if it is not known.
type usedPool struct {
	pool tidekeeperv1.NodePool
	used *capacity.Used
}

func (c clusterPools) pools() []usedPool {
	all := make([]usedPool, len(c.list.Items))
	for i := range all {
		all[i].pool = c.list.Items[i]
		if c.used != nil {
			all[i].used = c.used[i]
		}
	}
	return all
}

// runContexts lists the pools of several clusters.
func (o *listOptions) runContexts(ctx context.Context) error {
	answers, err := cmdutil.AskContexts(ctx, o.Env, o.contexts.Names, o.readCluster)
	if err != nil {
		return err
	}
	rows, problems := cmdutil.Locate(answers, clusterPools.pools), cmdutil.ProblemsOf(answers)
	if err := cmdutil.SortLocated(&o.output, rows, func(p *usedPool) runtime.Object { return &p.pool }); err != nil {
		return err
	}
	if !o.output.IsTable() {
		list := tidekeeperv1.SchemeGroupVersion.WithKind(poolKind.Name + "List")
		if err := cmdutil.PrintLocated(&o.output, o.Console.Out, list, rows, problems, (*usedPool).fields); err != nil {
			return err
		}
		return cmdutil.Unanswered(problems)
	}
	t := o.contextsTable(answers, rows)
	layout := t.Layout(o.Console.Screen, nil)
	if err := t.WriteLayout(o.Console.Out, o.Console.Screen, layout); err != nil {
		return err
	}
	if !o.watch {
		return cmdutil.Unanswered(problems)
	}
	return o.followContexts(ctx, answers, layout)
}

// readCluster reads the pools of a cluster.
func (o *listOptions) readCluster(ctx context.Context, e *cmdutil.Env) (read clusterPools, err error) {
	c, err := e.Kubeconfig.Client()
	if err != nil {
		return read, err
	}
	one := *o
	one.cmd = nil // It is not for several goroutines.
	if read.list, err = one.list(ctx, c); err != nil {
		return read, err
	}
	if o.showsUsed() {
		if read.used, err = usedByPools(ctx, e, c, read.list.Items); err != nil {
			return read, err
		}
	}
	return read, noteOutdated(ctx, e, c, read.list.Items)
}

// showsUsed reports whether the usage of nodes is shown. Lines that follow could not be
// kept up to date.
func (o *listOptions) showsUsed() bool { return !o.watch && (o.output.Wide() || !o.output.IsTable()) }

// fields are the fields of a pool for programs.
func (p *usedPool) fields() (map[string]any, error) {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&p.pool)
	if err != nil {
		return nil, err
	}
	return fields, addUsedField(fields, p.used)
}

// contextsTable is the list of several clusters for people.
func (o *listOptions) contextsTable(answers []cmdutil.Answer[clusterPools], rows []cmdutil.Located[usedPool]) *term.Table {
	items, used := make([]tidekeeperv1.NodePool, len(rows)), make([]*capacity.Used, len(rows))
	for i := range rows {
		items[i], used[i] = rows[i].Value.pool, rows[i].Value.used
	}
	t := o.table(items, o.Now())
	if o.showsUsed() {
		addUsed(t, items, used)
	}
	nothing := "no node pools"
	if !o.selector.Empty() {
		nothing += " that match"
	}
	cmdutil.AddContexts(t, rows)
	cmdutil.AddOthers(t, answers, rows, nothing)
	return t
}

// followContexts prints a line for each change in any of several clusters.
func (o *listOptions) followContexts(ctx context.Context, answers []cmdutil.Answer[clusterPools], layout *term.Layout) error {
	followers := make([]*cmdutil.Follower, len(answers))
	for i, a := range answers {
		followers[i] = &cmdutil.Follower{
			Context: a.Context, Kind: poolKind.Name, Empty: emptyList, Options: o.listOptions(), Layout: layout,
			Table: func(object client.Object, now time.Time) *term.Table {
				t := o.table([]tidekeeperv1.NodePool{*object.(*tidekeeperv1.NodePool)}, now)
				cmdutil.AddContexts(t, []cmdutil.Located[usedPool]{{Context: a.Context}})
				return t
			},
		}
		if a.Problem == "" {
			followers[i].List = a.Value.list
		}
	}
	return o.FollowContexts(ctx, followers)
}
