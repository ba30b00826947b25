// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package maintenance

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/cli/cmdutil"
	"tidekeeper.dev/tidekeeper/internal/drain"
	"tidekeeper.dev/tidekeeper/internal/freeze/period"
	"tidekeeper.dev/tidekeeper/internal/kube/lists"
	"tidekeeper.dev/tidekeeper/internal/view"
)

// world holds the objects that maintenance rounds depend on, except the NodeMaintenances. In a
// round, every node that a NodeMaintenance selects is maintained once.
type world struct {
	nodes   []*corev1.Node
	pools   []*tidekeeperv1.NodePool
	freezes []period.Period
	// room evaluates whether other nodes have room for the pods of a node. It is nil before
	// readPods is called. It stays nil if the user is not allowed to list pods.
	room *view.Room
}

// readWorld reads the objects that the maintenance rounds of the given NodeMaintenances depend on,
// except pods. If the user is not allowed to list Freezes, it prints a note that Freezes are not
// taken into account.
func readWorld(ctx context.Context, e *cmdutil.Env, c client.Client, items []tidekeeperv1.NodeMaintenance) (*world, error) {
	w := &world{}
	list := &corev1.NodeList{}
	if err := c.List(ctx, list, cmdutil.FromCache()); err != nil {
		return nil, err
	}
	w.nodes = lists.Pointers(list.Items)
	for i := range items {
		if len(items[i].Spec.Nodes.Pools) == 0 || w.pools != nil {
			continue
		}
		pools := &tidekeeperv1.NodePoolList{}
		if err := c.List(ctx, pools); err != nil {
			return nil, cmdutil.AboutKind(err, "NodePool", "", "")
		}
		for i := range pools.Items {
			w.pools = append(w.pools, &pools.Items[i])
		}
	}
	freezes := &tidekeeperv1.FreezeList{}
	switch err := c.List(ctx, freezes); {
	case apierrors.IsForbidden(err):
		e.Console.Note("note: you may not list Freezes: Freezes in force are not counted")
	case err != nil && !apierrors.IsNotFound(err): // There are no Freezes if the cluster lacks their CRD.
		return nil, err
	}
	for i := range freezes.Items {
		if p := period.Of(&freezes.Items[i]); e.Now().Before(p.Until) {
			w.freezes = append(w.freezes, p)
		}
	}
	return w, nil
}

// readPods reads the pods of all nodes, to evaluate whether other nodes have room for the pods of a
// drained node. If the user is not allowed to list pods, it prints a note that pods are not
// evaluated.
func (w *world) readPods(ctx context.Context, e *cmdutil.Env, c client.Client) error {
	list, err := cmdutil.AllPods(ctx, c)
	if apierrors.IsForbidden(err) {
		e.Console.Note("note: you may not list pods: whether they have a place elsewhere is not evaluated")
		return nil
	}
	if err != nil {
		return err
	}
	w.room, _ = view.NewRoom(nil, w.nodes, lists.Pointers(list))
	return nil
}

// facts returns the objects that the maintenance rounds of the NodeMaintenance m depend on.
func (w *world) facts(m *tidekeeperv1.NodeMaintenance, now time.Time) view.MaintenanceFacts {
	f := view.MaintenanceFacts{Maintenance: m, Nodes: w.nodes, Pools: w.pools, Freezes: w.freezes}
	if w.room != nil {
		blockers := drain.NewWorld(nil, drain.Volumes{Nodes: w.nodes})
		f.Blockers = func(node *corev1.Node) *view.Status { return w.room.KeepsFromMaintenance(m, blockers, node.Name, now) }
	}
	return f
}
