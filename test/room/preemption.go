// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package room

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/defaultpreemption"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/feature"
)

// newPreemption returns the scheduler's plugin for preemption, with its default settings.
func newPreemption(ctx context.Context, f framework.Framework) (*defaultpreemption.DefaultPreemption, error) {
	args := &config.DefaultPreemptionArgs{MinCandidateNodesPercentage: 10, MinCandidateNodesAbsolute: 100}
	plugin, err := defaultpreemption.New(ctx, args, f, feature.Features{})
	if err != nil {
		return nil, fmt.Errorf("make the scheduler's preemption: %w", err)
	}
	return plugin, nil
}

// nominator maps nodes to the pods that are nominated for them.
type nominator map[string][]fwk.PodInfo

// AddNominatedPod implements [fwk.PodNominator].
func (n nominator) AddNominatedPod(klog.Logger, fwk.PodInfo, *fwk.NominatingInfo) {}

// DeleteNominatedPodIfExists implements [fwk.PodNominator].
func (n nominator) DeleteNominatedPodIfExists(*corev1.Pod) {}

// UpdateNominatedPod implements [fwk.PodNominator].
func (n nominator) UpdateNominatedPod(klog.Logger, *corev1.Pod, fwk.PodInfo) {}

// NominatedPodsForNode implements [fwk.PodNominator].
func (n nominator) NominatedPodsForNode(name string) []fwk.PodInfo { return n[name] }

// preempted is what the scheduler does for a pod.
type preempted struct {
	// fits is true if a node admits the pod without preemption, apart from nominated pods.
	fits bool
	// node and victims are the choice of the scheduler. The node is empty if preemption does not
	// help.
	node       string
	victims    []string
	violations int
	// candidates maps all candidate nodes to their victims.
	candidates map[string][]string
}

// preempt returns what the scheduler does for a pod.
func (o *oracle) preempt(ctx context.Context, w *preemptionWorld) (result preempted, err error) {
	clear(o.nominated)
	var bound []*corev1.Pod
	for _, pod := range w.pods {
		if pod.Spec.NodeName != "" {
			bound = append(bound, pod)
			continue
		}
		info, err := framework.NewPodInfo(pod)
		if err != nil {
			return result, fmt.Errorf("nominate a pod: %w", err)
		}
		o.nominated[pod.Status.NominatedNodeName] = append(o.nominated[pod.Status.NominatedNodeName], info)
	}
	snapshot := cache.NewSnapshot(bound, w.nodes)
	o.nodes.MutableSnapshotSharedLister = snapshot
	state := framework.NewCycleState()
	limited, status, _ := o.filters.RunPreFilterPlugins(ctx, state, w.copy)
	if !status.IsSuccess() {
		return result, fmt.Errorf("prepare the scheduler's filters: %w", status.AsError())
	}
	infos, err := snapshot.NodeInfos().List()
	if err != nil {
		return result, fmt.Errorf("list the nodes of the snapshot: %w", err)
	}
	var possible []fwk.NodeInfo
	for _, info := range infos {
		if !limited.AllNodes() && !limited.NodeNames.Has(info.Node().Name) {
			continue
		}
		if o.filters.RunFilterPlugins(ctx, state, w.copy, info).IsSuccess() {
			result.fits = true
			return result, nil
		}
		if o.filters.RunFilterPluginsWithNominatedPods(ctx, state, w.copy, info).Code() == fwk.Unschedulable {
			possible = append(possible, info)
		}
	}
	if len(possible) == 0 {
		return result, nil
	}
	return result, o.choose(ctx, state, w, possible, &result)
}

// choose sets the scheduler's choice among the nodes on which preemption may help.
func (o *oracle) choose(ctx context.Context, state fwk.CycleState, w *preemptionWorld, possible []fwk.NodeInfo, result *preempted) error {
	budgets := make([]*policyv1.PodDisruptionBudget, len(w.budgets))
	for i := range w.budgets {
		budgets[i] = &w.budgets[i]
	}
	evaluator := o.preemption.Evaluator
	candidates, _, err := evaluator.DryRunPreemption(ctx, state, w.copy, possible, budgets, 0, int32(len(possible)))
	if err != nil {
		return fmt.Errorf("find candidates: %w", err)
	}
	result.candidates = map[string][]string{}
	for _, c := range candidates {
		for _, pod := range c.Victims().Pods {
			result.candidates[c.Name()] = append(result.candidates[c.Name()], pod.Name)
		}
	}
	if best := evaluator.SelectCandidate(ctx, candidates); best != nil {
		result.node, result.victims, result.violations = best.Name(), result.candidates[best.Name()], int(best.Victims().NumPDBViolations)
	}
	return nil
}
