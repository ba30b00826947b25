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

// clusterPools holds a cluster's pools and, if the output shows it, the measured usage of each
// pool's nodes.
type clusterPools struct {
	list *tidekeeperv1.NodePoolList
	used []*capacity.Used
}

// usedPool is a pool with the measured usage of its nodes. The usage is nil if it is unknown.
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

// clusters defines how the command lists the pools of several clusters.
func (o *listOptions) clusters() *cmdutil.Clusters[clusterPools, usedPool] {
	return &cmdutil.Clusters[clusterPools, usedPool]{
		Read: o.readCluster, Items: clusterPools.pools, List: func(c clusterPools) client.ObjectList { return c.list },
		Object: func(p *usedPool) runtime.Object { return &p.pool }, Fields: (*usedPool).fields, Table: o.contextsTable,
		Changes: func(context.Context, []cmdutil.Answer[clusterPools], cmdutil.Answer[clusterPools]) (*cmdutil.Follower, func(client.Object) usedPool, error) {
			return &cmdutil.Follower{Options: o.listOptions()}, func(object client.Object) usedPool { return usedPool{pool: *object.(*tidekeeperv1.NodePool)} }, nil
		},
	}
}

// readCluster reads the pools of a cluster and, if the output shows it, the measured usage of the
// pools' nodes.
func (o *listOptions) readCluster(ctx context.Context, e *cmdutil.Env) (read clusterPools, err error) {
	c, err := e.Kubeconfig.Client()
	if err != nil {
		return read, err
	}
	one := *o
	one.cmd = nil // Clusters are read concurrently, and a cobra.Command is not safe for concurrent use.
	if read.list, err = one.list(ctx, c); err != nil {
		return read, err
	}
	if o.showsUsed() {
		if read.used, err = usedByPools(ctx, e, c, read.list.Items); err != nil {
			return read, err
		}
	}
	return read, e.NoteOutdated(ctx, c, unobserved(read.list.Items, e.Now()))
}

// showsUsed reports whether to show the measured usage of nodes. It returns false for -w, because
// usage cannot be watched.
func (o *listOptions) showsUsed() bool { return !o.Watch && (o.Output.Wide() || !o.Output.IsTable()) }

// fields returns the pool's fields for -o json and -o yaml.
func (p *usedPool) fields() (map[string]any, error) {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&p.pool)
	if err != nil {
		return nil, err
	}
	return fields, addUsedField(fields, p.used)
}

// contextsTable returns the table of the pools of several clusters.
func (o *listOptions) contextsTable(_ []cmdutil.Answer[clusterPools], rows []cmdutil.Located[usedPool], now time.Time) *term.Table {
	items, used := make([]tidekeeperv1.NodePool, len(rows)), make([]*capacity.Used, len(rows))
	for i := range rows {
		items[i], used[i] = rows[i].Value.pool, rows[i].Value.used
	}
	t := o.table(items, now)
	if o.showsUsed() {
		addUsed(t, items, used)
	}
	return t
}
