// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package matrix

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/podcount"
	"tidekeeper.dev/tidekeeper/test/fault/matrix/witness"
	"tidekeeper.dev/tidekeeper/test/framework"
)

func role(pool string) string { return tidekeeperv1.RoleLabelPrefix + pool }

func runtimeClass(pool string) *nodev1.RuntimeClass {
	return &nodev1.RuntimeClass{ObjectMeta: metav1.ObjectMeta{Name: "node-pool-" + pool}}
}

// nodes adds nodes with labels and taints of another client, as members of a pool if
// one is given.
func (w *scenarioRun) nodes(count int, pool string) {
	labels := "example.com/theirs=1,example.com/world=" + w.name
	if pool != "" {
		labels += "," + role(pool) + "="
	}
	w.AddNodes(w, w.name, count, "--labels", labels, "--taints", "example.com/theirs=:PreferNoSchedule")
}

// pool creates a pool with settings of every kind.
func (w *scenarioRun) pool(suffix string) *tidekeeperv1.NodePool {
	p := framework.Pool(w.name + suffix)
	p.Spec = tidekeeperv1.NodePoolSpec{
		Labels:      map[string]tidekeeperv1.LabelValue{"example.com/size": "10"},
		Annotations: map[string]tidekeeperv1.AnnotationValue{"example.com/note": "ours"},
		Taints:      []tidekeeperv1.Taint{{Key: "example.com/pool", Value: "ours", Effect: corev1.TaintEffectNoSchedule}},
		Handler:     "runc",
	}
	return p
}

// poolOf creates a pool with nodes, and waits until it is healthy.
func (w *scenarioRun) poolOf(count int) {
	w.nodes(count, w.name)
	w.Apply(w, w.pool(""))
	w.eventually("the pool is healthy", func() error { return w.poolIs("", count, "Healthy") })
}

// poolIs returns nil if a pool has this status for its current spec.
func (w *scenarioRun) poolIs(suffix string, nodes int, reason string) error {
	p := framework.Pool(w.name + suffix)
	if err := w.Get(w.Context(), client.ObjectKeyFromObject(p), p); err != nil {
		return err
	}
	if int(p.Status.NodeCount) != nodes {
		return fmt.Errorf("pool %s has %d nodes, want %d", p.Name, p.Status.NodeCount, nodes)
	}
	return framework.ReadyIs(p.Status.Conditions, p.Generation, reason)
}

func (w *scenarioRun) isGone(o client.Object) error {
	err := w.Get(w.Context(), client.ObjectKeyFromObject(o), o)
	if apierrors.IsNotFound(err) {
		return nil
	}
	return errors.Join(err, fmt.Errorf("%T %s is still there", o, o.GetName()))
}

// isClean returns nil if a node has nothing from a pool.
func (w *scenarioRun) isClean(name string) error {
	node := framework.Node(name)
	if err := w.Get(w.Context(), client.ObjectKeyFromObject(node), node); err != nil {
		return err
	}
	tainted := slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.Key == "example.com/pool" })
	if node.Labels["example.com/size"] != "" || node.Annotations[tidekeeperv1.OwnershipAnnotation] != "" || tainted {
		return fmt.Errorf("node %s has labels %v, annotations %v and taints %v", name, node.Labels, node.Annotations, node.Spec.Taints)
	}
	return nil
}

func (w *scenarioRun) relabel(node, key string, value *string) {
	n := framework.Node(node)
	w.Change(w, n, func() {
		if value == nil {
			delete(n.Labels, key)
		} else {
			n.Labels[key] = *value
		}
	})
}

// deployment creates a Deployment of two pods that take this long to become ready, and
// waits until it is rolled out.
func (w *scenarioRun) deployment(readyAfter string) {
	w.nodes(1, "")
	d := framework.Deployment(w.name, 2, framework.App)
	d.Annotations = map[string]string{"example.com/theirs": "1"}
	if readyAfter != "" {
		d.Spec.Template.Annotations = map[string]string{"sandbox.tidekeeper.dev/ready-after": readyAfter}
	}
	w.Apply(w, d)
	w.rolledOut("deployment")
}

// statefulSet creates a StatefulSet of two pods, and waits until it is ready.
func (w *scenarioRun) statefulSet() {
	w.nodes(1, "")
	d := framework.Deployment(w.name, 2, framework.App)
	w.Apply(w, &appsv1.StatefulSet{ObjectMeta: d.ObjectMeta, Spec: appsv1.StatefulSetSpec{
		Replicas: d.Spec.Replicas, Selector: d.Spec.Selector, Template: d.Spec.Template,
		PodManagementPolicy: appsv1.ParallelPodManagement,
	}})
	w.rolledOut("statefulset")
}

// daemonSet creates a DaemonSet for two nodes of its own, and waits until it is ready.
func (w *scenarioRun) daemonSet() {
	w.nodes(2, "")
	d := framework.Deployment(w.name, 0, framework.App)
	d.Spec.Template.Spec.NodeSelector = map[string]string{"example.com/world": w.name}
	w.Apply(w, &appsv1.DaemonSet{ObjectMeta: d.ObjectMeta, Spec: appsv1.DaemonSetSpec{Selector: d.Spec.Selector, Template: d.Spec.Template}})
	w.rolledOut("daemonset")
}

func (w *scenarioRun) rolledOut(kind string) {
	if out, err := w.Kubectl("", "rollout", "status", kind+"/"+w.name, "--timeout=60s"); err != nil {
		w.Fatalf("%v\n%s", err, out)
	}
}

// restartOf creates a Deployment with a suspended ScheduledRestart.
func (w *scenarioRun) restartOf(readyAfter string) {
	w.deployment(readyAfter)
	w.scheduled(w.name, "Deployment")
}

// scheduled creates a suspended ScheduledRestart for the run's workload.
func (w *scenarioRun) scheduled(name, kind string) {
	r := framework.ScheduledRestart(name)
	r.Spec = tidekeeperv1.ScheduledRestartSpec{TargetRef: tidekeeperv1.TargetRef{Kind: kind, Name: w.name}, Suspend: true}
	w.Apply(w, r)
	w.eventually("it waits to be enabled", func() error { return w.restartNamedIs(name, "Suspended") })
}

// orderedRestarts creates two Deployments with suspended ScheduledRestarts, of which one comes
// after the other.
func (w *scenarioRun) orderedRestarts() {
	w.restartOf("1s")
	name := w.name + "-next"
	w.Apply(w, framework.Deployment(name, 2, framework.App))
	if out, err := w.Kubectl("", "rollout", "status", "deployment/"+name, "--timeout=60s"); err != nil {
		w.Fatalf("%v\n%s", err, out)
	}
	r := framework.ScheduledRestart(name)
	r.Spec = tidekeeperv1.ScheduledRestartSpec{
		TargetRef: tidekeeperv1.TargetRef{Kind: "Deployment", Name: name}, Suspend: true, After: []string{w.name},
	}
	w.Apply(w, r)
	w.eventually("the next one waits to be enabled", func() error { return w.restartNamedIs(name, "Suspended") })
}

// scale sets the replicas of the Deployment.
func (w *scenarioRun) scale(replicas int32) {
	d := framework.Deployment(w.name, 0, framework.App)
	w.Change(w, d, func() { d.Spec.Replicas = &replicas })
}

// counted returns nil if the label on the ReplicaSet has this number of pods.
func (w *scenarioRun) counted(pods int) error {
	list := &appsv1.ReplicaSetList{}
	if err := w.List(w.Context(), list, client.InNamespace(metav1.NamespaceDefault), client.MatchingLabels{"app": w.name}); err != nil {
		return err
	}
	if len(list.Items) != 1 || list.Items[0].Labels[podcount.Label] != fmt.Sprint(pods) || int(list.Items[0].Status.ReadyReplicas) != pods {
		return fmt.Errorf("there are %d ReplicaSets, the first with the labels %v", len(list.Items), list.Items[0].Labels)
	}
	return nil
}

func (w *scenarioRun) requestRestart() {
	w.tick = time.Now().Truncate(time.Second).UTC()
	w.requestAs(w.name, w.tick)
}

// freeze creates a Freeze that is in force for longer than the scenario.
func (w *scenarioRun) freeze() *tidekeeperv1.Freeze {
	f := &tidekeeperv1.Freeze{
		ObjectMeta: metav1.ObjectMeta{Name: w.name},
		Spec:       tidekeeperv1.FreezeSpec{Until: metav1.Time{Time: time.Now().Add(time.Hour)}, Reason: "the books are closed"},
	}
	w.Apply(w, f)
	return f
}

// requestSoon requests a restart of the workload of the scenario for a time that is late
// enough for the tick to be claimed before it is due.
func (w *scenarioRun) requestSoon() {
	w.tick = time.Now().Add(3 * time.Second).Truncate(time.Second).UTC()
	w.requestAs(w.name, w.tick)
}

// limitAge limits the age of the pods, so that they have to be restarted in some seconds: before
// they are too old a window closes, and only new ones last until the next one opens.
func (w *scenarioRun) limitAge() {
	now := time.Now().Truncate(time.Second).UTC()
	w.tick = now.Add(3 * time.Second)
	opened := now.Add(-time.Minute).Truncate(time.Minute)
	limit, opens := opened.AddDate(0, 0, 1).Sub(w.tick), fmt.Sprintf("%d %d * * *", opened.Minute(), opened.Hour())
	w.own = []string{limit.String(), opens, fmt.Sprint(int(limit / time.Second))}
	r := framework.ScheduledRestart(w.name)
	w.Change(w, r, func() {
		metav1.SetMetaDataAnnotation(&r.ObjectMeta, witness.OwnTick, w.tick.Format(time.RFC3339))
		r.Spec.Suspend, r.Spec.MaxPodAgeSeconds = false, int32(limit/time.Second)
		r.Spec.Windows = []tidekeeperv1.RestartWindow{{Schedule: tidekeeperv1.CronExpression(opens), DurationSeconds: 3600}}
	})
}

// requestAs requests a restart with a tick.
func (w *scenarioRun) requestAs(name string, tick time.Time) {
	r := framework.ScheduledRestart(name)
	w.Change(w, r, func() {
		metav1.SetMetaDataAnnotation(&r.ObjectMeta, tidekeeperv1.RestartNowAnnotation, tick.Format(time.RFC3339))
	})
}

// underWay waits until the requested restart has started.
func (w *scenarioRun) underWay() {
	r := framework.ScheduledRestart(w.name)
	w.eventually("the restart is under way", func() error {
		w.Refresh(w, r)
		if r.Status.Active == nil && len(r.Status.History) == 0 {
			return errors.New("it has not begun")
		}
		return nil
	})
}

func (w *scenarioRun) restartIs(reason string) error { return w.restartNamedIs(w.name, reason) }

func (w *scenarioRun) restartNamedIs(name, reason string) error {
	r := framework.ScheduledRestart(name)
	if err := w.Get(w.Context(), client.ObjectKeyFromObject(r), r); err != nil {
		return err
	}
	return framework.ReadyIs(r.Status.Conditions, r.Generation, reason)
}

// restarted returns nil when the requested restart is over and no other is running.
func (w *scenarioRun) restarted(reason string) error { return w.restartedAs(w.name, reason) }

func (w *scenarioRun) restartedAs(name, reason string) error {
	r := framework.ScheduledRestart(name)
	w.Refresh(w, r)
	switch {
	case r.Status.Active != nil:
		return errors.New("it is under way")
	case len(r.Status.History) == 0:
		return errors.New("it has not begun")
	case r.Status.History[0].Outcome != tidekeeperv1.OutcomeSucceeded:
		return fmt.Errorf("it has %s: %s", r.Status.History[0].Outcome, r.Status.History[0].Message)
	}
	return w.restartNamedIs(name, reason)
}

// byEviction has the pods of the workload evicted from now on, and makes them older than any tick
// to come.
func (w *scenarioRun) byEviction() {
	r := framework.ScheduledRestart(w.name)
	w.Change(w, r, func() { r.Spec.Method = tidekeeperv1.MethodEvict })
	w.outlivePods()
}

// outlivePods waits until any tick to come is younger than the pods of the workload, whose creation
// is in whole seconds.
func (w *scenarioRun) outlivePods() {
	time.Sleep(time.Until(time.Now().Truncate(time.Second).Add(time.Second)))
	for _, pod := range w.pods() {
		w.own = append(w.own, pod.Name)
	}
}

// evictedOnce returns nil unless another pod was evicted than those from before the tick, or one
// of these is left.
func (w *scenarioRun) evictedOnce() error {
	for _, p := range w.proxy.PassedSince(w, w.begun) {
		if p.Verb == "create" && strings.HasSuffix(p.Path, "/eviction") && p.Upstream == http.StatusCreated && !slices.Contains(w.own, p.Name) {
			w.Errorf("pod %s was evicted, which is younger than the tick", p.Name)
		}
	}
	for _, pod := range w.pods() {
		if slices.Contains(w.own, pod.Name) {
			return fmt.Errorf("pod %s is still there", pod.Name)
		}
	}
	return nil
}

// pods returns the pods of the workload.
func (w *scenarioRun) pods() []corev1.Pod {
	list := &corev1.PodList{}
	if err := w.List(w.Context(), list, client.InNamespace(metav1.NamespaceDefault), client.MatchingLabels{"app": w.name}); err != nil {
		w.Fatal(err)
	}
	return list.Items
}
