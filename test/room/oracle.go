// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package room

import (
	"context"
	"fmt"
	"math/rand/v2"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/defaultbinder"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/defaultpreemption"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodevolumelimits"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/queuesort"
	"k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	"k8s.io/kubernetes/pkg/scheduler/metrics"
	schedulertesting "k8s.io/kubernetes/pkg/scheduler/testing/framework"
)

// filters lists the scheduler's default plugins that keep pods of these worlds from nodes, in the
// scheduler's order. The worlds have no resource claims.
var filters = []string{
	names.NodeUnschedulable, names.NodeName, names.TaintToleration, names.NodeAffinity, names.NodePorts,
	names.NodeResourcesFit, names.VolumeRestrictions, names.NodeVolumeLimits, names.VolumeBinding, names.VolumeZone, names.PodTopologySpread, names.InterPodAffinity,
}

// oracle places pods by the filters of the scheduler, on a random node among those that the filters
// admit. Real schedulers choose by scores, so that each of their choices is one of the oracle's.
type oracle struct {
	filters framework.Framework
	nodes   *lister
	storage *binder
	// nominated holds the pods for which the scheduler has made room, by node.
	nominated  nominator
	preemption *defaultpreemption.DefaultPreemption
}

// lister is the snapshot that the filters read. It is replaced after each placement.
type lister struct {
	fwk.MutableSnapshotSharedLister
}

func newOracle(ctx context.Context) (*oracle, error) {
	metrics.Register()
	registry := plugins.NewInTreeRegistry()
	register := []schedulertesting.RegisterPluginFunc{
		schedulertesting.RegisterQueueSortPlugin(queuesort.Name, queuesort.New),
		schedulertesting.RegisterBindPlugin(defaultbinder.Name, defaultbinder.New),
	}
	for _, name := range filters {
		points := []string{"Filter"}
		if name != names.NodeUnschedulable && name != names.NodeName && name != names.TaintToleration {
			points = append(points, "PreFilter")
		}
		register = append(register, schedulertesting.RegisterPluginAsExtensions(name, registry[name], points...))
	}
	client := fake.NewClientset(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "other"}})
	informers := informers.NewSharedInformerFactory(client, 0)
	o := &oracle{nodes: &lister{cache.NewEmptySnapshot()}, nominated: nominator{}}
	f, err := schedulertesting.NewFramework(ctx, register, "default-scheduler",
		runtime.WithClientSet(client), runtime.WithInformerFactory(informers),
		runtime.WithSnapshotSharedLister(o.nodes), runtime.WithMutableSnapshotLister(o.nodes), runtime.WithPodNominator(o.nominated), runtime.WithParallelism(1),
		runtime.WithSharedCSIManager(nodevolumelimits.NewCSIManager(informers.Storage().V1().CSINodes().Lister())))
	if err != nil {
		return nil, fmt.Errorf("make the scheduler's filters: %w", err)
	}
	o.filters = f
	if o.preemption, err = newPreemption(ctx, f); err != nil {
		return nil, err
	}
	o.storage = newBinder(informers)
	informers.Start(ctx.Done())
	informers.WaitForCacheSync(ctx.Done())
	return o, nil
}

// copies returns how many copies of a pod are placed, one after the other, until no node admits
// another one.
func (o *oracle) copies(ctx context.Context, w *world, random *rand.Rand) (int, error) {
	if err := o.storage.reset(w); err != nil {
		return 0, fmt.Errorf("store the volumes: %w", err)
	}
	pods := w.pods
	for count := 0; ; count++ {
		placed := w.copyOf(count)
		if err := o.storage.create(w.ownClaims(placed, count), w, random); err != nil {
			return count, fmt.Errorf("create the claims of a copy: %w", err)
		}
		admitted, err := o.admitted(ctx, placed, pods, w.nodes)
		if err != nil || len(admitted) == 0 {
			return count, err
		}
		placed.Spec.NodeName = admitted[random.IntN(len(admitted))]
		if err := o.storage.bind(placed, w.nodeOf(placed)); err != nil {
			return count, fmt.Errorf("bind the volumes of a copy: %w", err)
		}
		pods = append(pods[:len(pods):len(pods)], placed)
	}
}

// admitted returns the names of the nodes that the scheduler's filters admit for a pod.
func (o *oracle) admitted(ctx context.Context, pod *corev1.Pod, pods []*corev1.Pod, nodes []*corev1.Node) (list []string, err error) {
	snapshot := cache.NewSnapshot(pods, nodes)
	o.nodes.MutableSnapshotSharedLister = snapshot
	state := framework.NewCycleState()
	limited, status, _ := o.filters.RunPreFilterPlugins(ctx, state, pod)
	switch {
	case status.IsRejected(), apierrors.IsNotFound(status.AsError()):
		return nil, nil // Without the StorageClass of a claim, the scheduler fails instead.
	case !status.IsSuccess():
		return nil, fmt.Errorf("prepare the scheduler's filters: %w", status.AsError())
	}
	infos, err := snapshot.NodeInfos().List()
	if err != nil {
		return nil, fmt.Errorf("list the nodes of the snapshot: %w", err)
	}
	for _, info := range infos {
		if !limited.AllNodes() && !limited.NodeNames.Has(info.Node().Name) {
			continue
		}
		status := o.filters.RunFilterPlugins(ctx, state, pod, info)
		switch {
		case status.IsSuccess():
			list = append(list, info.Node().Name)
		case !status.IsRejected():
			return nil, fmt.Errorf("filter node %s: %w", info.Node().Name, status.AsError())
		}
	}
	return list, nil
}
