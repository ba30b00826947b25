// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
)

type step struct {
	title string
	do    func(context.Context, *demo) error
}

var steps = []step{
	{"A real control plane with five simulated nodes", func(ctx context.Context, d *demo) error {
		if err := d.startSandbox(ctx); err != nil {
			return err
		}
		return d.kubectl(ctx, "get", "nodes")
	}},
	{"The kinds, and the manager", func(ctx context.Context, d *demo) error {
		if err := d.kubectl(ctx, "apply", "-k", "config/crd"); err != nil {
			return err
		}
		if err := d.kubectl(ctx, "wait", "--for=condition=Established", "crd/freezes.tidekeeper.dev", "crd/nodepools.tidekeeper.dev", "crd/scheduledrestarts.tidekeeper.dev"); err != nil {
			return err
		}
		return d.startManager()
	}},
	{"Two pools select their nodes", func(ctx context.Context, d *demo) error {
		if err := d.kubectl(ctx, "label", "node", "node-1", "node-2", "node-3", role("worker")+"="); err != nil {
			return err
		}
		if err := d.kubectl(ctx, "label", "node", "node-4", role("gpu")+"="); err != nil {
			return err
		}
		if err := d.kubectl(ctx, "apply", "-k", "config/samples"); err != nil {
			return err
		}
		if err := d.untilPool(ctx, "worker", 3); err != nil {
			return err
		}
		if err := d.untilPool(ctx, "gpu", 1); err != nil {
			return err
		}
		for _, node := range []string{"node-1", "node-2", "node-3"} {
			if err := d.untilNode(ctx, node, "worker"); err != nil {
				return err
			}
		}
		if err := d.untilNode(ctx, "node-4", "gpu"); err != nil {
			return err
		}
		if err := d.kubectl(ctx, "get", "nodes", "-L", label("worker"), "-L", label("gpu")); err != nil {
			return err
		}
		return d.kubectl(ctx, "get", "nodepools,runtimeclasses")
	}},
	{"The pool's utilization rises as a Deployment is scheduled", func(ctx context.Context, d *demo) error {
		if err := d.kubectl(ctx, "apply", "-f", "hack/demo/web.yaml"); err != nil {
			return err
		}
		if err := d.until(ctx, "the pool counts 12 pods that request 6 of its 48 CPUs: 12 %", func() error {
			pool, err := d.pool(ctx, "worker")
			if err != nil {
				return err
			}
			return equal("12 pods, 6 CPUs, 12 %", fmt.Sprintf("%d pods, %s CPUs, %d %%",
				pool.Status.Requested.Pods().Value(), pool.Status.Requested.Cpu(), pool.Status.RequestedPercent["cpu"]))
		}); err != nil {
			return err
		}
		if err := d.kubectl(ctx, "get", "nodepools", "-o", "wide"); err != nil {
			return err
		}
		pool, err := d.pool(ctx, "worker")
		if err != nil {
			return err
		}
		printUtilization(pool)
		return nil
	}},
	{"A node moves to the other pool, and both pools follow", func(ctx context.Context, d *demo) error {
		if err := d.kubectl(ctx, "label", "node", "node-3", role("worker")+"-", role("gpu")+"="); err != nil {
			return err
		}
		if err := d.untilPool(ctx, "worker", 2); err != nil {
			return err
		}
		if err := d.untilPool(ctx, "gpu", 2); err != nil {
			return err
		}
		if err := d.untilNode(ctx, "node-3", "gpu"); err != nil {
			return err
		}
		return d.kubectl(ctx, "get", "nodepools")
	}},
	{"A setting that is changed by hand is reverted", func(ctx context.Context, d *demo) error {
		if err := d.kubectl(ctx, "label", "--overwrite", "node", "node-1", label("worker")+"=99", "example.com/mine=1"); err != nil {
			return err
		}
		if err := d.untilNode(ctx, "node-1", "worker"); err != nil {
			return err
		}
		if err := d.until(ctx, "the label that is not the pool's is still there", func() error {
			node := &corev1.Node{}
			if err := d.read(ctx, node, "node", "node-1"); err != nil {
				return err
			}
			return equal("1", node.Labels["example.com/mine"])
		}); err != nil {
			return err
		}
		if err := d.until(ctx, "an event on the pool reports it", func() error {
			list := &corev1.EventList{}
			if err := d.read(ctx, list, "events", "--field-selector=reason=DriftCorrected,involvedObject.name=worker"); err != nil {
				return err
			}
			return equal(1, len(list.Items))
		}); err != nil {
			return err
		}
		return d.kubectl(ctx, "get", "events", "--field-selector=involvedObject.kind=NodePool",
			"-o", "custom-columns=TYPE:.type,REASON:.reason,POOL:.involvedObject.name,MESSAGE:.message")
	}},
	{"A Deployment opts in to scheduled restarts, and waits to be enabled", func(ctx context.Context, d *demo) error {
		if err := d.kubectl(ctx, "annotate", "deployment", "web", tidekeeperv1.OptInAnnotation+"=true"); err != nil {
			return err
		}
		if err := d.untilRestart(ctx, "web", tidekeeperv1.ReasonSuspended); err != nil {
			return err
		}
		return d.kubectl(ctx, "get", "scheduledrestarts")
	}},
	{"It gets a schedule and is restarted at the next tick; a broken Deployment is left alone", func(ctx context.Context, d *demo) error {
		if err := d.kubectl(ctx, "apply", "-f", "hack/demo/broken.yaml"); err != nil {
			return err
		}
		if err := d.kubectl(ctx, "annotate", "deployment", "web", tidekeeperv1.OptInScheduleAnnotation+"=* * * * *"); err != nil {
			return err
		}
		if err := d.untilRestart(ctx, "web", tidekeeperv1.ReasonScheduled); err != nil {
			return err
		}
		if err := d.kubectl(ctx, "get", "scheduledrestarts"); err != nil {
			return err
		}
		fmt.Println("  a schedule ticks on the minute, so this takes up to one ...")
		if err := d.untilRolled(ctx, "web"); err != nil {
			return err
		}
		if err := d.kubectl(ctx, "get", "scheduledrestart", "web", "-o",
			"custom-columns=TICK:.status.history[*].scheduledTime,STARTED:.status.history[*].startedTime,COMPLETED:.status.history[*].completedTime,OUTCOME:.status.history[*].outcome,PODS:.status.history[*].pods"); err != nil {
			return err
		}
		if err := d.untilRestart(ctx, "broken", tidekeeperv1.ReasonTargetUnhealthy); err != nil {
			return err
		}
		if err := d.until(ctx, "the broken Deployment was not restarted", func() error {
			broken := &appsv1.Deployment{}
			if err := d.read(ctx, broken, "deployment", "broken"); err != nil {
				return err
			}
			return equal("", broken.Spec.Template.Annotations[tidekeeperv1.RestartedAtAnnotation])
		}); err != nil {
			return err
		}
		if err := d.kubectl(ctx, "get", "scheduledrestarts"); err != nil {
			return err
		}
		// One restart is enough for the demo: return to the default schedule, which is midnight.
		return d.kubectl(ctx, "annotate", "deployment", "web", "broken", tidekeeperv1.OptInScheduleAnnotation+"-")
	}},
	{"A pool is deleted, and nothing of it is left on its nodes", func(ctx context.Context, d *demo) error {
		if err := d.kubectl(ctx, "delete", "nodepool", "worker", "--timeout=30s"); err != nil {
			return err
		}
		for _, node := range []string{"node-1", "node-2"} {
			if err := d.untilNode(ctx, node, ""); err != nil {
				return err
			}
		}
		if err := d.kubectl(ctx, "get", "nodes", "-L", label("worker"), "-L", label("gpu")); err != nil {
			return err
		}
		return d.kubectl(ctx, "get", "nodepools")
	}},
}

func role(pool string) string  { return tidekeeperv1.RoleLabelPrefix + pool }
func label(pool string) string { return "node-pool.example.com/" + pool }

func equal[T comparable](want, got T) error {
	if want != got {
		return fmt.Errorf("want %v, it is %v", want, got)
	}
	return nil
}

func (d *demo) pool(ctx context.Context, name string) (*tidekeeperv1.NodePool, error) {
	pool := &tidekeeperv1.NodePool{}
	return pool, d.read(ctx, pool, "nodepool", name)
}

// untilPool waits until a node pool is healthy and has the given number of nodes.
func (d *demo) untilPool(ctx context.Context, name string, nodes int32) error {
	return d.until(ctx, fmt.Sprintf("pool %s is healthy, nodes: %d", name, nodes), func() error {
		pool, err := d.pool(ctx, name)
		if err != nil {
			return err
		}
		ready := meta.FindStatusCondition(pool.Status.Conditions, tidekeeperv1.ConditionReady)
		if ready == nil {
			return fmt.Errorf("it has no status yet")
		}
		return equal(fmt.Sprint("Healthy with ", nodes), fmt.Sprint(ready.Reason, " with ", pool.Status.NodeCount))
	})
}

func (d *demo) restart(ctx context.Context, name string) (*tidekeeperv1.ScheduledRestart, error) {
	restart := &tidekeeperv1.ScheduledRestart{}
	return restart, d.read(ctx, restart, "scheduledrestart", name)
}

// untilRestart waits until a ScheduledRestart's condition Ready has the given reason.
func (d *demo) untilRestart(ctx context.Context, name, reason string) error {
	return d.until(ctx, fmt.Sprintf("scheduled restart %s is %s", name, reason), func() error {
		restart, err := d.restart(ctx, name)
		if err != nil {
			return err
		}
		ready := meta.FindStatusCondition(restart.Status.Conditions, tidekeeperv1.ConditionReady)
		if ready == nil {
			return fmt.Errorf("it has no status yet")
		}
		return equal(reason, ready.Reason)
	})
}

// untilRolled waits until a Deployment was restarted at a tick and its pod template contains the
// tick's time.
func (d *demo) untilRolled(ctx context.Context, name string) error {
	return d.until(ctx, fmt.Sprintf("a tick has restarted Deployment %s, and its pod template carries that tick", name), func() error {
		restart, err := d.restart(ctx, name)
		if err != nil {
			return err
		}
		if len(restart.Status.History) == 0 || restart.Status.History[0].Outcome != tidekeeperv1.OutcomeSucceeded {
			return fmt.Errorf("its history is %+v", restart.Status.History)
		}
		target := &appsv1.Deployment{}
		if err := d.read(ctx, target, "deployment", name); err != nil {
			return err
		}
		return equal(restart.Status.History[0].ScheduledTime.UTC().Format(time.RFC3339), target.Spec.Template.Annotations[tidekeeperv1.RestartedAtAnnotation])
	})
}

// untilNode waits until a node has exactly the settings of the given sample pool. "" stands for a
// node without a pool.
func (d *demo) untilNode(ctx context.Context, name, pool string) error {
	wants := map[string][]string{
		"":       nil,
		"worker": {"label worker=10", "taint node-pool.example.com=worker:NoSchedule", "record of worker"},
		"gpu":    {"label gpu=true", "annotation owner", "taint node-pool.example.com=gpu:NoSchedule", "record of gpu"},
	}
	what := fmt.Sprintf("%s has what the pool %s wants, and nothing from another pool", name, pool)
	if pool == "" {
		what = name + " no longer has anything from a pool"
	}
	return d.until(ctx, what, func() error {
		node := &corev1.Node{}
		if err := d.read(ctx, node, "node", name); err != nil {
			return err
		}
		return equal(strings.Join(wants[pool], ", "), strings.Join(found(node), ", "))
	})
}

// found lists the settings of the sample pools that are present on a node.
func found(node *corev1.Node) []string {
	var all []string
	for _, key := range slices.Sorted(maps.Keys(node.Labels)) {
		if short, ok := strings.CutPrefix(key, label("")); ok {
			all = append(all, "label "+short+"="+node.Labels[key])
		}
	}
	if _, ok := node.Annotations[label("owner")]; ok {
		all = append(all, "annotation owner")
	}
	for _, taint := range node.Spec.Taints {
		if taint.Key == "node-pool.example.com" {
			all = append(all, "taint "+taint.ToString())
		}
	}
	if record := node.Annotations[tidekeeperv1.OwnershipAnnotation]; record != "" {
		for _, pool := range []string{"gpu", "worker"} {
			if strings.Contains(record, `"`+pool+`":{`) {
				all = append(all, "record of "+pool)
			}
		}
	}
	return all
}

// printUtilization draws a bar chart of a pool's utilization.
func printUtilization(pool *tidekeeperv1.NodePool) {
	const width = 40
	fmt.Printf("  %s, %d nodes\n", pool.Name, pool.Status.NodeCount)
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourcePods} {
		percent := int(pool.Status.RequestedPercent[name])
		filled := min(width, percent*width/100)
		requested, allocatable := pool.Status.Requested[name], pool.Status.Allocatable[name]
		fmt.Printf("  %-7s %s%s %3d %%  %s of %s\n", name,
			strings.Repeat("█", filled), strings.Repeat("░", width-filled), percent, requested.String(), allocatable.String())
	}
}
