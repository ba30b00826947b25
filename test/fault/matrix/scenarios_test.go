// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package matrix

import (
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/test/framework"
)

// scenario is something that users do, and what comes of it.
type scenario struct {
	name string
	// prepare makes what is there before, and waits until it is at rest.
	prepare func(*world)
	// act is what users do.
	act func(*world)
	// done returns nil once the manager has done what it has to.
	done func(*world) error
}

var scenarios = []scenario{
	{
		name:    "pool created",
		prepare: func(w *world) { w.nodes(2, w.name) },
		act:     func(w *world) { w.Apply(w, w.pool("")) },
		done:    func(w *world) error { return w.poolIs("", 2, "Healthy") },
	},
	{
		name:    "pool edited",
		prepare: func(w *world) { w.poolOf(2) },
		act: func(w *world) {
			p := framework.Pool(w.name)
			w.Change(w, p, func() {
				delete(p.Spec.Labels, "example.com/size")
				p.Spec.Labels["example.com/other"] = "new"
				p.Spec.Annotations["example.com/note"] = "changed"
				p.Spec.Taints[0].Value = "changed"
			})
		},
		done: func(w *world) error { return w.poolIs("", 2, "Healthy") },
	},
	{
		name:    "pool deleted",
		prepare: func(w *world) { w.poolOf(2) },
		act:     func(w *world) { w.Delete(w, framework.Pool(w.name)) },
		done: func(w *world) error {
			return errors.Join(w.isGone(framework.Pool(w.name)), w.isGone(runtimeClass(w.name)), w.isClean(w.node(1)), w.isClean(w.node(2)))
		},
	},
	{
		name: "node joined",
		prepare: func(w *world) {
			w.poolOf(1)
			w.AddNodes(w, w.name+"-late", 1, "--labels", "example.com/theirs=1")
		},
		act:  func(w *world) { w.relabel(w.name+"-late-1", role(w.name), new(string)) },
		done: func(w *world) error { return w.poolIs("", 2, "Healthy") },
	},
	{
		name:    "node left",
		prepare: func(w *world) { w.poolOf(2) },
		act:     func(w *world) { w.relabel(w.node(2), role(w.name), nil) },
		done:    func(w *world) error { return w.poolIs("", 1, "Healthy") },
	},
	{
		name: "node moved to another pool",
		prepare: func(w *world) {
			w.poolOf(2)
			other := w.pool("-b")
			other.Spec.Handler, other.Spec.Annotations = "", nil
			other.Spec.Labels = map[string]tidekeeperv1.LabelValue{"example.com/size": "20"}
			w.Apply(w, other)
			w.eventually("the other pool has no nodes", func() error { return w.poolIs("-b", 0, "NoNodes") })
		},
		act: func(w *world) {
			node := framework.Node(w.node(2))
			w.Change(w, node, func() {
				delete(node.Labels, role(w.name))
				node.Labels[role(w.name+"-b")] = ""
			})
		},
		done: func(w *world) error { return errors.Join(w.poolIs("", 1, "Healthy"), w.poolIs("-b", 1, "Healthy")) },
	},
	{
		name:    "node edited by hand",
		prepare: func(w *world) { w.poolOf(2) },
		act: func(w *world) {
			node := framework.Node(w.node(1))
			w.Change(w, node, func() {
				node.Labels["example.com/size"] = "by-hand"
				node.Spec.Taints = []corev1.Taint{theirs}
			})
		},
		done: func(w *world) error {
			node := framework.Node(w.node(1))
			w.Refresh(w, node)
			if node.Labels["example.com/size"] != "10" || len(node.Spec.Taints) < 2 {
				return fmt.Errorf("labels %v, taints %v", node.Labels, node.Spec.Taints)
			}
			return w.poolIs("", 2, "Healthy")
		},
	},
	{
		name:    "two pools in conflict",
		prepare: func(w *world) { w.poolOf(2) },
		act: func(w *world) {
			// The age of pools is in whole seconds, and then goes by name.
			younger := w.pool("-b")
			younger.Spec.Selector = &tidekeeperv1.NodeSelector{MatchLabels: map[string]tidekeeperv1.LabelValue{"example.com/world": tidekeeperv1.LabelValue(w.name)}}
			younger.Spec.Labels = map[string]tidekeeperv1.LabelValue{"example.com/size": "20", "example.com/younger": "1"}
			younger.Spec.Taints, younger.Spec.Handler, younger.Spec.Annotations = nil, "", nil
			w.Apply(w, younger)
		},
		done: func(w *world) error { return errors.Join(w.poolIs("", 2, "Healthy"), w.poolIs("-b", 2, "Conflicted")) },
	},
	{
		name:    "RuntimeClass replaced",
		prepare: func(w *world) { w.poolOf(1) },
		act: func(w *world) {
			p := framework.Pool(w.name)
			w.Change(w, p, func() { p.Spec.Handler = "kata" })
		},
		done: func(w *world) error {
			class := runtimeClass(w.name)
			if err := w.Get(w.Context(), client.ObjectKeyFromObject(class), class); err != nil {
				return err
			}
			if class.Handler != "kata" {
				return fmt.Errorf("its handler is %s", class.Handler)
			}
			return w.poolIs("", 1, "Healthy")
		},
	},
	{
		name:    "restart from tick to finish",
		prepare: func(w *world) { w.restartOf("") },
		act:     func(w *world) { w.requestRestart() },
		done:    func(w *world) error { return w.restarted("Suspended") },
	},
	{
		name:    "schedule edited mid-restart",
		prepare: func(w *world) { w.restartOf("1s") },
		act: func(w *world) {
			w.requestRestart()
			r := framework.ScheduledRestart(w.name)
			w.eventually("the restart is under way", func() error {
				w.Refresh(w, r)
				if r.Status.Active == nil && len(r.Status.History) == 0 {
					return errors.New("it has not begun")
				}
				return nil
			})
			w.Change(w, r, func() {
				// So far away that it does not come while this runs.
				r.Spec.Schedule, r.Spec.TimeZone, r.Spec.Suspend = "0 0 29 2 *", "Asia/Kathmandu", false
			})
		},
		done: func(w *world) error { return w.restarted("Scheduled") },
	},
	{
		name:    "opt-in from annotation to collection",
		prepare: func(w *world) { w.deployment("") },
		act: func(w *world) {
			d := framework.Deployment(w.name, 0, framework.App)
			w.Change(w, d, func() {
				metav1.SetMetaDataAnnotation(&d.ObjectMeta, tidekeeperv1.OptInAnnotation, "true")
			})
			r := framework.ScheduledRestart(w.name)
			w.eventually("there is a ScheduledRestart", func() error {
				if err := w.Get(w.Context(), client.ObjectKeyFromObject(r), r); err != nil {
					return err
				}
				return framework.ReadyIs(r.Status.Conditions, r.Generation, "Suspended")
			})
			w.Delete(w, d)
		},
		done: func(w *world) error {
			return errors.Join(w.isGone(framework.ScheduledRestart(w.name)), w.isGone(framework.Deployment(w.name, 0, framework.App)))
		},
	},
	{
		name: "opt-in taken back",
		prepare: func(w *world) {
			w.deployment("")
			d := framework.Deployment(w.name, 0, framework.App)
			w.Change(w, d, func() {
				metav1.SetMetaDataAnnotation(&d.ObjectMeta, tidekeeperv1.OptInAnnotation, "true")
				metav1.SetMetaDataAnnotation(&d.ObjectMeta, tidekeeperv1.OptInScheduleAnnotation, "0 0 29 2 *")
			})
			w.eventually("it is scheduled", func() error { return w.restartIs("Scheduled") })
		},
		act: func(w *world) {
			d := framework.Deployment(w.name, 0, framework.App)
			w.Change(w, d, func() { delete(d.Annotations, tidekeeperv1.OptInAnnotation) })
		},
		done: func(w *world) error { return w.isGone(framework.ScheduledRestart(w.name)) },
	},
}

// theirs is a taint that no pool asks for.
var theirs = corev1.Taint{Key: "example.com/theirs", Effect: corev1.TaintEffectPreferNoSchedule}

func role(pool string) string { return tidekeeperv1.RoleLabelPrefix + pool }

func runtimeClass(pool string) *nodev1.RuntimeClass {
	return &nodev1.RuntimeClass{ObjectMeta: metav1.ObjectMeta{Name: "node-pool-" + pool}}
}

// nodes adds nodes with somebody else's labels and taints, members of a pool if
// one is named.
func (w *world) nodes(count int, pool string) {
	labels := "example.com/theirs=1,example.com/world=" + w.name
	if pool != "" {
		labels += "," + role(pool) + "="
	}
	w.AddNodes(w, w.name, count, "--labels", labels, "--taints", "example.com/theirs=:PreferNoSchedule")
}

// pool makes a pool that has everything.
func (w *world) pool(suffix string) *tidekeeperv1.NodePool {
	p := framework.Pool(w.name + suffix)
	p.Spec = tidekeeperv1.NodePoolSpec{
		Labels:      map[string]tidekeeperv1.LabelValue{"example.com/size": "10"},
		Annotations: map[string]tidekeeperv1.AnnotationValue{"example.com/note": "ours"},
		Taints:      []tidekeeperv1.Taint{{Key: "example.com/pool", Value: "ours", Effect: corev1.TaintEffectNoSchedule}},
		Handler:     "runc",
	}
	return p
}

// poolOf makes a pool with nodes, and waits until it is healthy.
func (w *world) poolOf(count int) {
	w.nodes(count, w.name)
	w.Apply(w, w.pool(""))
	w.eventually("the pool is healthy", func() error { return w.poolIs("", count, "Healthy") })
}

// poolIs returns nil if a pool is so, for its spec as it is now.
func (w *world) poolIs(suffix string, nodes int, reason string) error {
	p := framework.Pool(w.name + suffix)
	if err := w.Get(w.Context(), client.ObjectKeyFromObject(p), p); err != nil {
		return err
	}
	if int(p.Status.NodeCount) != nodes {
		return fmt.Errorf("pool %s has %d nodes, want %d", p.Name, p.Status.NodeCount, nodes)
	}
	return framework.ReadyIs(p.Status.Conditions, p.Generation, reason)
}

func (w *world) isGone(o client.Object) error {
	err := w.Get(w.Context(), client.ObjectKeyFromObject(o), o)
	if apierrors.IsNotFound(err) {
		return nil
	}
	return errors.Join(err, fmt.Errorf("%T %s is still there", o, o.GetName()))
}

// isClean returns nil if a node has nothing of a pool.
func (w *world) isClean(name string) error {
	node := framework.Node(name)
	if err := w.Get(w.Context(), client.ObjectKeyFromObject(node), node); err != nil {
		return err
	}
	tainted := slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.Key == "example.com/pool" })
	if node.Labels["example.com/size"] != "" || node.Annotations[tidekeeperv1.RecordAnnotation] != "" || tainted {
		return fmt.Errorf("node %s has labels %v, annotations %v and taints %v", name, node.Labels, node.Annotations, node.Spec.Taints)
	}
	return nil
}

func (w *world) relabel(node, key string, value *string) {
	n := framework.Node(node)
	w.Change(w, n, func() {
		if value == nil {
			delete(n.Labels, key)
		} else {
			n.Labels[key] = *value
		}
	})
}

// deployment makes a Deployment of two pods that take so long to be ready, and
// waits until it is rolled out.
func (w *world) deployment(readyAfter string) {
	w.nodes(1, "")
	d := framework.Deployment(w.name, 2, framework.App)
	d.Annotations = map[string]string{"example.com/theirs": "1"}
	if readyAfter != "" {
		d.Spec.Template.Annotations = map[string]string{"sandbox.tidekeeper.dev/ready-after": readyAfter}
	}
	w.Apply(w, d)
	if out, err := w.Kubectl("", "rollout", "status", "deployment/"+w.name, "--timeout=60s"); err != nil {
		w.Fatalf("%v\n%s", err, out)
	}
}

// restartOf makes a suspended ScheduledRestart of a Deployment.
func (w *world) restartOf(readyAfter string) {
	w.deployment(readyAfter)
	r := framework.ScheduledRestart(w.name)
	r.Spec = tidekeeperv1.ScheduledRestartSpec{TargetRef: tidekeeperv1.TargetRef{Kind: "Deployment", Name: w.name}, Suspend: true}
	w.Apply(w, r)
	w.eventually("it waits to be enabled", func() error { return w.restartIs("Suspended") })
}

func (w *world) requestRestart() {
	w.tick = w.RequestRestart(w, framework.ScheduledRestart(w.name), time.Now())
}

func (w *world) restartIs(reason string) error {
	r := framework.ScheduledRestart(w.name)
	if err := w.Get(w.Context(), client.ObjectKeyFromObject(r), r); err != nil {
		return err
	}
	return framework.ReadyIs(r.Status.Conditions, r.Generation, reason)
}

// restarted returns nil when the requested restart is over and nothing else is
// under way.
func (w *world) restarted(reason string) error {
	r := framework.ScheduledRestart(w.name)
	w.Refresh(w, r)
	switch {
	case r.Status.Active != nil:
		return errors.New("it is under way")
	case len(r.Status.History) == 0:
		return errors.New("it has not begun")
	case r.Status.History[0].Outcome != tidekeeperv1.OutcomeSucceeded:
		return fmt.Errorf("it has %s: %s", r.Status.History[0].Outcome, r.Status.History[0].Message)
	}
	return w.restartIs(reason)
}
