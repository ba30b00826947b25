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

// clusterRestarts holds a cluster's ScheduledRestarts, and the list options for this cluster. The
// options differ between clusters: they include the default namespace of the kubeconfig context,
// and the Freezes and workloads that were read from the cluster.
type clusterRestarts struct {
	list    *tidekeeperv1.ScheduledRestartList
	options *listOptions
}

// sharedRestart is a ScheduledRestart with the list options of its cluster, which include the
// Freezes and the other ScheduledRestarts of the same workload.
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

// clusters defines how the command lists the ScheduledRestarts of several clusters.
func (o *listOptions) clusters() *cmdutil.Clusters[clusterRestarts, sharedRestart] {
	return &cmdutil.Clusters[clusterRestarts, sharedRestart]{
		Read: o.readCluster, Items: clusterRestarts.restarts, List: func(c clusterRestarts) client.ObjectList { return c.list },
		Object: func(r *sharedRestart) runtime.Object { return &r.restart }, Fields: (*sharedRestart).fields,
		Table: o.contextsTable, Changes: o.changes,
	}
}

// ofCluster returns a copy of the list options for the cluster that e connects to.
func (o *listOptions) ofCluster(e *cmdutil.Env) (*listOptions, error) {
	one := *o
	one.Env, one.cmd, one.looks = e, nil, map[string]look{} // Clusters are read concurrently, and a cobra.Command is not safe for concurrent use.
	var err error
	one.namespace, err = e.Kubeconfig.Namespace(o.allNamespaces)
	return &one, err
}

// readCluster reads the ScheduledRestarts of a cluster and, for a table, the Freezes and workloads
// that affect them.
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
	if o.Output.IsTable() {
		if err := read.options.lookAround(ctx, c, read.list.Items); err != nil {
			return read, err
		}
	}
	return read, read.options.NoteOutdated(ctx, c, read.options.unobserved(read.list.Items))
}

// namespacesDiffer reports whether the ScheduledRestarts of all clusters can be in different
// namespaces, so that the table needs the column NAMESPACE.
func (o *listOptions) namespacesDiffer(answers []cmdutil.Answer[clusterRestarts]) bool {
	namespaces := map[string]bool{}
	for _, a := range answers {
		if a.Problem == "" {
			namespaces[a.Value.options.namespace] = true
		}
	}
	return o.allNamespaces || len(namespaces) > 1
}

// fields returns the fields of the ScheduledRestart for -o json and -o yaml.
func (r *sharedRestart) fields() (map[string]any, error) {
	return runtime.DefaultUnstructuredConverter.ToUnstructured(&r.restart)
}

// contextsTable returns the table of the ScheduledRestarts of several clusters.
func (o *listOptions) contextsTable(answers []cmdutil.Answer[clusterRestarts], rows []cmdutil.Located[sharedRestart], now time.Time) *term.Table {
	shown := make([]view.Restart, len(rows))
	for i := range rows {
		r := &rows[i].Value
		shown[i] = r.options.restart(&r.restart, now)
	}
	return o.Output.Table(listTable(shown, o.namespacesDiffer(answers), o.Output.Wide(), now, o.Local))
}

// changes returns the Follower that implements -w for cluster a, and a function that combines a
// changed ScheduledRestart with the additional data that the table shows.
func (o *listOptions) changes(ctx context.Context, answers []cmdutil.Answer[clusterRestarts], a cmdutil.Answer[clusterRestarts]) (*cmdutil.Follower, func(client.Object) sharedRestart, error) {
	one := a.Value.options
	if a.Problem != "" {
		var err error
		if one, err = o.ofCluster(o.ForContext(a.Context)); err != nil {
			return nil, nil, err
		}
	}
	f := &cmdutil.Follower{Options: client.ListOptions{Namespace: one.namespace, LabelSelector: o.Selector}}
	if !o.namespacesDiffer(answers) {
		f.Namespace = one.namespace
	}
	return f, func(object client.Object) sharedRestart {
		if c, err := one.Kubeconfig.Client(); err == nil {
			one.lookAgain(ctx, c, object.GetNamespace())
		}
		return sharedRestart{*object.(*tidekeeperv1.ScheduledRestart), one}
	}, nil
}
