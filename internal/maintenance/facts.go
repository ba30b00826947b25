// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package maintenance

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/capacity"
	"tidekeeper.dev/tidekeeper/internal/kube/lists"
	"tidekeeper.dev/tidekeeper/internal/kube/pods"
	"tidekeeper.dev/tidekeeper/internal/maintenance/decision"
	"tidekeeper.dev/tidekeeper/internal/maintenance/selection"
	"tidekeeper.dev/tidekeeper/internal/resources"
)

// gather reads the facts for a decision about a NodeMaintenance from the cache.
func (r *reconciler) gather(ctx context.Context, m *tidekeeperv1.NodeMaintenance) (decision.Input, error) {
	in := decision.Input{Maintenance: m, Now: r.clock.Now(), Nodes: map[string]decision.Node{}, Drains: r.drains.states(m.Name)}
	list, pools := &corev1.NodeList{}, &tidekeeperv1.NodePoolList{}
	if err := r.client.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		return in, fmt.Errorf("list nodes: %w", err)
	}
	if err := r.client.List(ctx, pools, client.UnsafeDisableDeepCopy); err != nil {
		return in, fmt.Errorf("list node pools: %w", err)
	}
	selected, err := selection.Nodes(&m.Spec.Nodes, lists.Pointers(list.Items), lists.Pointers(pools.Items), in.Now)
	if err != nil {
		return in, fmt.Errorf("select nodes: %w", err)
	}
	for i := range list.Items {
		n := &list.Items[i]
		_, begun := m.Status.Nodes[n.Name]
		if begun || isMarked(n, m) {
			in.Nodes[n.Name] = decision.NodeOf(n, 0)
		}
	}
	for _, s := range selected {
		in.Nodes[s.Name] = decision.NodeOf(s.Node, s.Group)
		in.Selected = append(in.Selected, s.Name)
	}
	freeze, err := r.freezes.Anywhere(ctx)
	if err != nil {
		return in, fmt.Errorf("read the freezes in force: %w", err)
	}
	if freeze != nil {
		in.Frozen, in.FrozenUntil = freeze.String(), freeze.Until
	}
	places := map[string]bool{} // A reconcile may decide repeatedly.
	in.HasPlace = func(node string, drained []string) bool {
		key := node + " " + strings.Join(drained, " ")
		if _, known := places[key]; !known {
			places[key] = r.places.has(ctx, node, drained)
		}
		return places[key]
	}
	return in, nil
}

// mostNodesRead is the number of nodes in maintenance up to which all of them are read from the API
// server for each decision.
const mostNodesRead = 20

// decide returns the decision about a NodeMaintenance. It reads the nodes in maintenance from the
// API server: in a cache that lags behind the status, annotations and labels that the manager has
// just added would seem to have been removed. If there are more than mostNodesRead, it reads only the
// nodes whose progress the decision changes, and decides again.
func (r *reconciler) decide(ctx context.Context, in *decision.Input) (decision.Output, error) {
	read, running := r.drains.doubted(in.Maintenance.Name), decision.Running(&in.Maintenance.Status)
	if len(running) <= mostNodesRead {
		read = running
	}
	live := map[string]bool{}
	for {
		for _, name := range read {
			live[name] = true
			if err := r.refresh(ctx, in, name); err != nil {
				return decision.Output{}, err
			}
		}
		out := decision.Decide(*in)
		read = slices.DeleteFunc(out.Changed(&in.Maintenance.Status), func(name string) bool { return live[name] })
		if len(read) == 0 {
			return out, nil
		}
	}
}

// refresh reads a node in maintenance from the API server.
func (r *reconciler) refresh(ctx context.Context, in *decision.Input, name string) error {
	node := &corev1.Node{}
	err := r.apiReader.Get(ctx, client.ObjectKey{Name: name}, node)
	switch {
	case apierrors.IsNotFound(err):
		delete(in.Nodes, name)
	case err != nil:
		return fmt.Errorf("get node %s: %w", name, err)
	default:
		in.Nodes[name] = decision.NodeOf(node, in.Nodes[name].Group)
	}
	return nil
}

// placesFor is the time for which a model of the cluster is reused. Building the model takes more
// than a second in a cluster with 150,000 pods.
const placesFor = 20 * time.Second

// places evaluates whether other nodes have room for the pods of a node.
type places struct {
	client client.Reader
	pods   podKinds
	clock  clock.PassiveClock

	mu    sync.Mutex
	at    time.Time
	model *capacity.Cluster
}

// has reports whether the nodes that are not drained have room for the pods of a node, given the
// pods' requests, tolerations and selectors. If this cannot be evaluated because of an error, it
// returns false.
func (p *places) has(ctx context.Context, node string, drained []string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if now := p.clock.Now(); p.model == nil || now.Sub(p.at) >= placesFor || now.Before(p.at) {
		model, err := p.build(ctx)
		if err != nil {
			ctrl.LoggerFrom(ctx).Error(err, "Cannot evaluate whether pods have a place elsewhere")
			return false
		}
		p.model, p.at = model, now
	}
	loss := p.model.Lose(append([]string{node}, drained...), []string{node})
	return loss.Homeless() == 0
}

// podKinds provides the cached pods, grouped by node and kind. It is implemented by
// [podcache.Workloads].
type podKinds interface {
	EachKind(do func(node string, example *corev1.Pod, count int)) error
}

// build returns a model of the cached nodes and pods.
func (p *places) build(ctx context.Context) (*capacity.Cluster, error) {
	list := &corev1.NodeList{}
	if err := p.client.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list the nodes that could take pods: %w", err)
	}
	model := capacity.New(lists.Pointers(list.Items), nil)
	requests := map[*corev1.Pod][]resources.Amount{}
	err := p.pods.EachKind(func(node string, example *corev1.Pod, count int) {
		if pods.IsTerminal(example) {
			return
		}
		if requests[example] == nil {
			requests[example] = resources.Requests(example)
		}
		model.Add(node, example, requests[example], count)
	})
	if err != nil {
		return nil, fmt.Errorf("count the pods of nodes: %w", err)
	}
	return model, nil
}
