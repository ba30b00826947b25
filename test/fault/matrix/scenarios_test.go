// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package matrix

import (
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/test/framework"
)

// scenario is an action of users, and its result.
type scenario struct {
	name string
	// prepare creates the initial objects, and waits until they are settled.
	prepare func(*scenarioRun)
	// act is what users do.
	act func(*scenarioRun)
	// done returns nil once the manager has done what it should do.
	done func(*scenarioRun) error
	// again requests one more change of each kind, and waits until it is done.
	again func(*scenarioRun)
	// args are flags of the manager.
	args []string
	// argo: it has a Rollout of Argo.
	argo bool
	// often: it is played by make test. Together these concern each controller.
	often bool
	// sparse: it takes long and has many events that are similar to those of another
	// scenario, so only every third event gets a fault.
	sparse bool
}

var scenarios = []scenario{
	{
		name: "pool created", often: true,
		prepare: func(w *scenarioRun) { w.nodes(2, w.name) },
		act:     func(w *scenarioRun) { w.Apply(w, w.pool("")) },
		done:    func(w *scenarioRun) error { return w.poolIs("", 2, "Healthy") },
		again:   poolAgain,
	},
	{
		name:    "pool edited",
		prepare: func(w *scenarioRun) { w.poolOf(2) },
		act: func(w *scenarioRun) {
			p := framework.Pool(w.name)
			w.Change(w, p, func() {
				delete(p.Spec.Labels, "example.com/size")
				p.Spec.Labels["example.com/other"] = "new"
				p.Spec.Annotations["example.com/note"] = "changed"
				p.Spec.Taints[0].Value = "changed"
			})
		},
		done:  func(w *scenarioRun) error { return w.poolIs("", 2, "Healthy") },
		again: poolAgain,
	},
	{
		name: "pool deleted", often: true,
		prepare: func(w *scenarioRun) { w.poolOf(2) },
		act:     func(w *scenarioRun) { w.Delete(w, framework.Pool(w.name)) },
		done: func(w *scenarioRun) error {
			return errors.Join(w.isGone(framework.Pool(w.name)), w.isGone(runtimeClass(w.name)), w.isClean(w.node(1)), w.isClean(w.node(2)))
		},
		again: poolAgain,
	},
	{
		name: "node joined",
		prepare: func(w *scenarioRun) {
			w.poolOf(1)
			w.AddNodes(w, w.name+"-late", 1, "--labels", "example.com/theirs=1")
		},
		act:   func(w *scenarioRun) { w.relabel(w.name+"-late-1", role(w.name), new(string)) },
		done:  func(w *scenarioRun) error { return w.poolIs("", 2, "Healthy") },
		again: poolAgain,
	},
	{
		name: "node left", often: true,
		prepare: func(w *scenarioRun) { w.poolOf(2) },
		act:     func(w *scenarioRun) { w.relabel(w.node(2), role(w.name), nil) },
		done:    func(w *scenarioRun) error { return w.poolIs("", 1, "Healthy") },
		again:   poolAgain,
	},
	{
		name: "node moved to another pool",
		prepare: func(w *scenarioRun) {
			w.poolOf(2)
			other := w.pool("-b")
			other.Spec.Handler, other.Spec.Annotations = "", nil
			other.Spec.Labels = map[string]tidekeeperv1.LabelValue{"example.com/size": "20"}
			w.Apply(w, other)
			w.eventually("the other pool has no nodes", func() error { return w.poolIs("-b", 0, "NoNodes") })
		},
		act: func(w *scenarioRun) {
			node := framework.Node(w.node(2))
			w.Change(w, node, func() {
				delete(node.Labels, role(w.name))
				node.Labels[role(w.name+"-b")] = ""
			})
		},
		done: func(w *scenarioRun) error {
			return errors.Join(w.poolIs("", 1, "Healthy"), w.poolIs("-b", 1, "Healthy"))
		},
		again: poolAgain,
	},
	{
		name: "node edited by hand", often: true,
		prepare: func(w *scenarioRun) { w.poolOf(2) },
		act: func(w *scenarioRun) {
			node := framework.Node(w.node(1))
			w.Change(w, node, func() {
				node.Labels["example.com/size"] = "by-hand"
				node.Spec.Taints = []corev1.Taint{theirs}
			})
		},
		done: func(w *scenarioRun) error {
			node := framework.Node(w.node(1))
			w.Refresh(w, node)
			if node.Labels["example.com/size"] != "10" || len(node.Spec.Taints) < 2 {
				return fmt.Errorf("labels %v, taints %v", node.Labels, node.Spec.Taints)
			}
			return w.poolIs("", 2, "Healthy")
		},
		again: poolAgain,
	},
	{
		name:    "two pools in conflict",
		prepare: func(w *scenarioRun) { w.poolOf(2) },
		act: func(w *scenarioRun) {
			// The creation time of pools has a resolution of one second; ties are decided by name.
			younger := w.pool("-b")
			younger.Spec.Selector = &tidekeeperv1.NodeSelector{MatchLabels: map[string]tidekeeperv1.LabelValue{"example.com/world": tidekeeperv1.LabelValue(w.name)}}
			younger.Spec.Labels = map[string]tidekeeperv1.LabelValue{"example.com/size": "20", "example.com/younger": "1"}
			younger.Spec.Taints, younger.Spec.Handler, younger.Spec.Annotations = nil, "", nil
			w.Apply(w, younger)
		},
		done: func(w *scenarioRun) error {
			return errors.Join(w.poolIs("", 2, "Healthy"), w.poolIs("-b", 2, "Conflicted"))
		},
		again: poolAgain,
	},
	{
		name: "RuntimeClass replaced", often: true,
		prepare: func(w *scenarioRun) { w.poolOf(1) },
		act: func(w *scenarioRun) {
			p := framework.Pool(w.name)
			w.Change(w, p, func() { p.Spec.Handler = "kata" })
		},
		done: func(w *scenarioRun) error {
			class := runtimeClass(w.name)
			if err := w.Get(w.Context(), client.ObjectKeyFromObject(class), class); err != nil {
				return err
			}
			if class.Handler != "kata" {
				return fmt.Errorf("its handler is %s", class.Handler)
			}
			return w.poolIs("", 1, "Healthy")
		},
		again: poolAgain,
	},
	{
		name: "restart from tick to finish", often: true,
		prepare: func(w *scenarioRun) { w.restartOf("") },
		act:     func(w *scenarioRun) { w.requestRestart() },
		done:    func(w *scenarioRun) error { return w.restarted("Suspended") },
		again:   restartAgain,
	},
	{
		name:    "restart claimed before its tick",
		prepare: func(w *scenarioRun) { w.restartOf("") },
		act:     func(w *scenarioRun) { w.requestSoon() },
		done:    func(w *scenarioRun) error { return w.restarted("Suspended") },
		again:   restartAgain,
	},
	{
		name: "restart held back by a freeze", sparse: true,
		prepare: func(w *scenarioRun) { w.restartOf("") },
		act: func(w *scenarioRun) {
			f := w.freeze()
			w.requestRestart()
			w.eventually("it waits", func() error { return w.restartIs("Frozen") })
			w.Delete(w, f)
		},
		done:  func(w *scenarioRun) error { return w.restarted("Suspended") },
		again: restartAgain,
	},
	{
		name:    "restart for the age of pods",
		prepare: func(w *scenarioRun) { w.restartOf("") },
		act:     func(w *scenarioRun) { w.limitAge() },
		done:    func(w *scenarioRun) error { return w.restarted("Scheduled") },
		again:   restartAgain,
	},
	{
		name: "restart by eviction", sparse: true,
		prepare: func(w *scenarioRun) {
			w.restartOf("")
			w.byEviction()
		},
		act: func(w *scenarioRun) { w.requestRestart() },
		done: func(w *scenarioRun) error {
			return errors.Join(w.restarted("Suspended"), w.evictedOnce())
		},
		again: restartAgain,
	},
	{
		name: "restart that comes after another", sparse: true,
		prepare: func(w *scenarioRun) { w.orderedRestarts() },
		act: func(w *scenarioRun) {
			w.requestRestart()
			w.underWay()
			w.requestAs(w.name+"-next", w.tick)
		},
		done: func(w *scenarioRun) error {
			return errors.Join(w.restartedAs(w.name, "Suspended"), w.restartedAs(w.name+"-next", "Suspended"))
		},
		again: func(w *scenarioRun) {
			w.restartOnceMore(w.name)
			w.restartOnceMore(w.name + "-next")
		},
	},
	{
		name: "restart for a changed ConfigMap", sparse: true,
		args:    followsChanges,
		prepare: func(w *scenarioRun) { w.configuredRestart() },
		act:     func(w *scenarioRun) { w.changeConfig() },
		done:    func(w *scenarioRun) error { return w.restarted("Scheduled") },
		again:   restartAgain,
	},
	{
		name: "schedule edited mid-restart", sparse: true,
		prepare: func(w *scenarioRun) { w.restartOf("1s") },
		act: func(w *scenarioRun) {
			w.requestRestart()
			w.underWay()
			r := framework.ScheduledRestart(w.name)
			w.Change(w, r, func() {
				// So far in the future that it does not tick during the test.
				r.Spec.Schedule, r.Spec.TimeZone, r.Spec.Suspend = "0 0 29 2 *", "Asia/Kathmandu", false
			})
		},
		done:  func(w *scenarioRun) error { return w.restarted("Scheduled") },
		again: restartAgain,
	},
	{
		name:    "opt-in from annotation to collection",
		prepare: func(w *scenarioRun) { w.deployment("") },
		act: func(w *scenarioRun) {
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
		done: func(w *scenarioRun) error {
			return errors.Join(w.isGone(framework.ScheduledRestart(w.name)), w.isGone(framework.Deployment(w.name, 0, framework.App)))
		},
		again: optInAgain,
	},
	{
		name: "opt-in taken back", often: true,
		prepare: func(w *scenarioRun) {
			w.deployment("")
			d := framework.Deployment(w.name, 0, framework.App)
			w.Change(w, d, func() {
				metav1.SetMetaDataAnnotation(&d.ObjectMeta, tidekeeperv1.OptInAnnotation, "true")
				metav1.SetMetaDataAnnotation(&d.ObjectMeta, tidekeeperv1.OptInScheduleAnnotation, "0 0 29 2 *")
			})
			w.eventually("it is scheduled", func() error { return w.restartIs("Scheduled") })
		},
		act: func(w *scenarioRun) {
			d := framework.Deployment(w.name, 0, framework.App)
			w.Change(w, d, func() { delete(d.Annotations, tidekeeperv1.OptInAnnotation) })
		},
		done:  func(w *scenarioRun) error { return w.isGone(framework.ScheduledRestart(w.name)) },
		again: optInAgain,
	},
	{
		name: "StatefulSet restarted", sparse: true,
		prepare: func(w *scenarioRun) {
			w.statefulSet()
			w.scheduled(w.name, "StatefulSet")
		},
		act:   func(w *scenarioRun) { w.requestRestart() },
		done:  func(w *scenarioRun) error { return w.restarted("Suspended") },
		again: restartAgain,
	},
	{
		name: "DaemonSet restarted", sparse: true,
		prepare: func(w *scenarioRun) {
			w.daemonSet()
			w.scheduled(w.name, "DaemonSet")
		},
		act:   func(w *scenarioRun) { w.requestRestart() },
		done:  func(w *scenarioRun) error { return w.restarted("Suspended") },
		again: restartAgain,
	},
	{
		name: "Rollout of Argo restarted", sparse: true, argo: true,
		prepare: func(w *scenarioRun) { w.rolloutRestart() },
		act:     func(w *scenarioRun) { w.requestRestart() },
		done: func(w *scenarioRun) error {
			return errors.Join(w.restarted("Suspended"), w.rolloutIsHealthy(), w.replaced())
		},
		again: restartAgain,
	},
	{
		// The second finds the first one running, and waits for it.
		name: "two schedules of one workload", sparse: true,
		prepare: func(w *scenarioRun) {
			w.restartOf("1s")
			w.scheduled(w.name+"-b", "Deployment")
		},
		act: func(w *scenarioRun) {
			w.requestRestart()
			// Otherwise the later restart may serve both.
			w.eventually("the template has its tick", func() error {
				d := framework.Deployment(w.name, 0, framework.App)
				if w.Refresh(w, d); d.Spec.Template.Annotations[tidekeeperv1.RestartedAtAnnotation] == "" {
					return errors.New("it has none")
				}
				return nil
			})
			w.secondTick = w.tick.Add(time.Second)
			w.requestAs(w.name+"-b", w.secondTick)
		},
		done: func(w *scenarioRun) error {
			return errors.Join(w.restartedAs(w.name, "Suspended"), w.restartedAs(w.name+"-b", "Suspended"))
		},
		again: func(w *scenarioRun) {
			w.tick = w.secondTick
			w.restartOnceMore(w.name)
			w.restartOnceMore(w.name + "-b")
		},
	},
	{
		name: "pods counted", often: true,
		args: []string{"--controllers=*,pod-count"},
		prepare: func(w *scenarioRun) {
			w.deployment("")
			w.eventually("its pods are counted", func() error { return w.counted(2) })
		},
		act:  func(w *scenarioRun) { w.scale(3) },
		done: func(w *scenarioRun) error { return w.counted(3) },
		again: func(w *scenarioRun) {
			w.scale(1)
			w.again("the pods are counted once more", func() error { return w.counted(1) })
		},
	},
}

// theirs is a taint that no pool has in its spec.
var theirs = corev1.Taint{Key: "example.com/theirs", Effect: corev1.TaintEffectPreferNoSchedule}
