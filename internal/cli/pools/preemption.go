// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package pools

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"tidekeeper.dev/tidekeeper/internal/capacity"
	"tidekeeper.dev/tidekeeper/internal/cli/cmdutil"
	"tidekeeper.dev/tidekeeper/internal/term"
	"tidekeeper.dev/tidekeeper/internal/view"
)

// setPriority sets the priority and the preemption policy of a pod that the API server has not
// completed, from the pod's PriorityClass, or from the cluster's default. If the user is not allowed
// to read PriorityClasses, it returns a note for stderr.
func setPriority(ctx context.Context, c client.Client, pod *corev1.Pod) (note string, err error) {
	if pod.Spec.Priority != nil {
		return "", nil
	}
	var class *schedulingv1.PriorityClass
	if name := pod.Spec.PriorityClassName; name != "" {
		class, err = priorityClass(ctx, c, name)
	} else {
		class, err = defaultPriority(ctx, c)
	}
	switch {
	case apierrors.IsForbidden(err):
		return "Preemption is not evaluated, because the priority of the pod is not known: " + err.Error(), nil
	case err != nil:
		return "", err
	}
	pod.Spec.Priority, pod.Spec.PreemptionPolicy = &class.Value, class.PreemptionPolicy
	return "", nil
}

// checkPriorityClass returns an error if the PriorityClass with the given name does not exist. It
// returns nil if the name is empty, or if the user is not allowed to read PriorityClasses.
func checkPriorityClass(ctx context.Context, c client.Client, name string) error {
	if name == "" {
		return nil
	}
	if _, err := priorityClass(ctx, c, name); !apierrors.IsForbidden(err) {
		return err
	}
	return nil
}

func priorityClass(ctx context.Context, c client.Client, name string) (*schedulingv1.PriorityClass, error) {
	class := &schedulingv1.PriorityClass{}
	err := c.Get(ctx, client.ObjectKey{Name: name}, class)
	if apierrors.IsNotFound(err) {
		return nil, cmdutil.NotFound("PriorityClass", "", name)
	}
	return class, err
}

// defaultPriority returns the cluster's default PriorityClass. If there are several, the API server
// uses the one with the lowest value. Without any, it returns a PriorityClass with the value 0.
func defaultPriority(ctx context.Context, c client.Client) (*schedulingv1.PriorityClass, error) {
	list := &schedulingv1.PriorityClassList{}
	if err := c.List(ctx, list, cmdutil.FromCache()); err != nil {
		return nil, err
	}
	var found *schedulingv1.PriorityClass
	for i := range list.Items {
		if class := &list.Items[i]; class.GlobalDefault && (found == nil || class.Value < found.Value) {
			found = class
		}
	}
	if found == nil {
		found = &schedulingv1.PriorityClass{}
	}
	return found, nil
}

// readBudgets reads the PodDisruptionBudgets. If the user is not allowed to list them, it returns
// nil budgets and a note for stderr.
func readBudgets(ctx context.Context, c client.Client) (budgets *capacity.Budgets, note string, err error) {
	list := &policyv1.PodDisruptionBudgetList{}
	if err := c.List(ctx, list, cmdutil.FromCache()); apierrors.IsForbidden(err) {
		return nil, "PodDisruptionBudgets are not evaluated: " + err.Error(), nil
	} else if err != nil {
		return nil, "", err
	}
	return capacity.NewBudgets(list.Items), "", nil
}

// preempt adds to the fits how the scheduler would make room for a copy by preemption, if the pod
// has no place in a pool. It returns the preemption on a node in none of the pools as `elsewhere`.
func (o *fitOptions) preempt(ctx context.Context, c client.Client, r *view.Room, pod *corev1.Pod, fits []view.PoolFit) (elsewhere *capacity.Preemption, err error) {
	if !slices.ContainsFunc(fits, func(f view.PoolFit) bool { return f.Copies == 0 }) {
		return nil, nil
	}
	unread, err := setPriority(ctx, c, pod)
	if unread != "" {
		o.Console.Note(unread)
		return nil, err
	}
	if err != nil || !capacity.CanPreempt(pod) || !capacity.HasLower(r.Cluster, pod) {
		return nil, err
	}
	budgets, note, err := readBudgets(ctx, c)
	if err != nil {
		return nil, err
	}
	elsewhere = r.AddPreemptions(fits, pod, len(o.requests) > 0, budgets)
	if note != "" && (elsewhere != nil || slices.ContainsFunc(fits, func(f view.PoolFit) bool { return f.Preemption != nil })) {
		o.Console.Note(note)
	}
	return elsewhere, nil
}

// preemptionLines returns a sentence for each preemption in the fits. A node may be in several
// pools, so that they share a preemption.
func preemptionLines(fits []view.PoolFit) (lines []string) {
	for _, f := range fits {
		if f.Preemption == nil {
			continue
		}
		if line := view.PreemptionText(f.Preemption, ""); !slices.Contains(lines, line) {
			lines = append(lines, line)
		}
	}
	return lines
}

// printLines prints lines, after an empty line if there are any.
func (o *roomOptions) printLines(lines []string) {
	for i, line := range lines {
		if i == 0 {
			fmt.Fprintln(o.Console.Out)
		}
		fmt.Fprintln(o.Console.Out, term.Printable(line))
	}
}

// pendingGroups returns the groups of pending pods, with the preemptions by which the scheduler
// would make room for them.
func (o *pendingOptions) pendingGroups(ctx context.Context, c client.Client, r *view.Room) ([]view.PendingGroup, error) {
	if !view.MayPreempt(r.Cluster, r.Pods) {
		return r.Pending(), nil
	}
	budgets, note, err := readBudgets(ctx, c)
	if err != nil {
		return nil, err
	}
	groups := r.PendingPreempted(budgets)
	if note != "" && slices.ContainsFunc(groups, func(g view.PendingGroup) bool { return g.Preemption != nil && !g.Preemption.Underway }) {
		o.Console.Note(note)
	}
	return groups, nil
}
