// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package rotate

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/test/framework"
)

// extent is the size of a world and the durations in it.
type extent struct {
	nodes, workloads int
	// ready is the time that the containers of a pod need to be ready.
	ready time.Duration
	// timeout is the --timeout of kubectl drain.
	timeout time.Duration
	// trouble is the time between two kills of the leader, and between two losses of events.
	trouble time.Duration
}

var extents = map[string]extent{
	"small": {nodes: 6, workloads: 12, ready: time.Second, timeout: 3 * time.Second, trouble: 4 * time.Second},
	"full":  {nodes: 50, workloads: 300, ready: 5 * time.Second, timeout: 30 * time.Second, trouble: 10 * time.Second},
}

func sizeName() string { return cmp.Or(os.Getenv("SIZE"), "small") }

var (
	pools = []string{"web", "batch", "data"}
	zones = []string{"a", "b", "c"}
)

// Delays of the sandbox in addition to extent.ready: from the scheduling of a pod until its
// containers are started, and from its deletion until it no longer exists.
const (
	initialized = 100 * time.Millisecond
	terminated  = 100 * time.Millisecond
)

// Classes of workloads.
const (
	single  = "single"  // one replica
	blocked = "blocked" // a budget that allows no disruption, also with one replica
	other   = "other"   // several replicas, with a budget that allows disruptions or without a budget
)

// application is a Deployment of the world.
type application struct {
	Workload
	pool string
	// budget is the spec of the PodDisruptionBudget without its selector, or nil.
	budget *policyv1.PodDisruptionBudgetSpec
}

func (a application) class() string {
	switch {
	case a.Healthy == a.Replicas:
		return blocked
	case a.Replicas == 1:
		return single
	default:
		return other
	}
}

// applications returns the workloads of a world. Of 30 workloads, ten have one replica, and three
// have a budget that allows nothing: for one, two and three replicas. Ten have a budget that allows
// one or more disruptions, the others have none. Each pool has a third of them.
func applications(count int) []application {
	all := make([]application, count)
	for i := range all {
		// Each pool has its share of each kind, because 3 divides neither 10 nor 20.
		a := application{Workload: Workload{Name: fmt.Sprintf("app-%03d", i+1), Replicas: 1}, pool: pools[i/3%3]}
		number, several := i/3, i/3*2+i%3-1
		switch {
		case i%3 == 0 && number%10 == 0:
			a.allow(&policyv1.PodDisruptionBudgetSpec{MinAvailable: new(intstr.FromInt32(1))}, 1)
		case i%3 == 0:
		case several%20 == 0:
			a.Replicas = 2
			a.allow(&policyv1.PodDisruptionBudgetSpec{MaxUnavailable: new(intstr.FromInt32(0))}, 2)
		case several%20 == 10:
			a.Replicas = 3
			a.allow(&policyv1.PodDisruptionBudgetSpec{MinAvailable: new(intstr.FromString("100%"))}, 3)
		case several%4 == 1:
			a.Replicas = 2 + several%3
			a.allow(&policyv1.PodDisruptionBudgetSpec{MaxUnavailable: new(intstr.FromInt32(1))}, a.Replicas-1)
		case several%4 == 3:
			a.Replicas = 2 + several%3
			a.allow(&policyv1.PodDisruptionBudgetSpec{MinAvailable: new(intstr.FromString("50%"))}, quotient(a.Replicas, 2))
		default:
			a.Replicas = 2 + several%3
		}
		all[i] = a
	}
	return all
}

// allow sets the workload's budget, and the number of healthy pods that it demands.
func (a *application) allow(budget *policyv1.PodDisruptionBudgetSpec, healthy int) {
	a.budget, a.Healthy = budget, healthy
}

// TestApplications checks that the full world is the one that the page describes.
func TestApplications(t *testing.T) {
	classes, singles, budgets := map[string]int{}, 0, 0
	inPool := map[string]int{}
	for _, a := range applications(extents["full"].workloads) {
		classes[a.class()]++
		inPool[a.pool]++
		if a.Replicas == 1 {
			singles++
		}
		if a.budget != nil {
			budgets++
		}
	}
	if singles != 100 || classes[blocked] != 30 || classes[single] != 90 || classes[other] != 180 || budgets != 130 {
		t.Errorf("%d workloads have one replica, %d have a budget, the classes are %v", singles, budgets, classes)
	}
	for _, pool := range pools {
		if inPool[pool] < 90 {
			t.Errorf("the pool %s has %d workloads", pool, inPool[pool])
		}
	}
}

// world is a cluster with workloads, which each way of rotating its nodes finds in the same state.
type world struct {
	*framework.Cluster
	extent
	applications []application
	// nodeNames lists the nodes in the order of the pools.
	nodeNames []string
	// snapshot is the file to which the state was saved.
	snapshot string
}

func newWorld(t *testing.T, e extent) *world {
	t.Helper()
	w := &world{
		Cluster: framework.Start(t, "--nodes=0", "--pod-events=false"), extent: e,
		applications: applications(e.workloads), snapshot: filepath.Join(t.TempDir(), "snapshot"),
	}
	w.addNodes(t)
	w.create(t)
	w.awaitComplete(t)
	w.Sandbox(t, "snapshot", "save", w.snapshot)
	return w
}

// addNodes divides the nodes among the pools, and each pool's nodes among the zones.
func (w *world) addNodes(t *testing.T) {
	t.Helper()
	for p, pool := range pools {
		for z, zone := range zones {
			prefix, count := pool+"-"+zone, 0
			for i := range w.nodes {
				if i%3 == p && i/3%3 == z {
					count++
					w.nodeNames = append(w.nodeNames, fmt.Sprintf("%s-%d", prefix, count))
				}
			}
			if count > 0 {
				w.Sandbox(t, "nodes", "add", "--pool="+pool, "--name-prefix="+prefix, fmt.Sprint("--count=", count), "--labels="+corev1.LabelTopologyZone+"="+zone)
			}
		}
	}
}

// create creates the pools, a DaemonSet, and the workloads with their budgets.
func (w *world) create(t *testing.T) {
	t.Helper()
	for _, name := range pools {
		pool := framework.Pool(name)
		pool.Spec.Labels = map[string]tidekeeperv1.LabelValue{"example.com/pool": tidekeeperv1.LabelValue(name)}
		must(t, w.Create(t.Context(), pool))
	}
	must(t, w.Create(t.Context(), agent()))
	for _, a := range w.applications {
		d := framework.Deployment(a.Name, int32(a.Replicas), *framework.App.DeepCopy())
		template := &d.Spec.Template
		template.Annotations = map[string]string{
			"sandbox.tidekeeper.dev/initialized-after":      initialized.String(),
			"sandbox.tidekeeper.dev/containers-ready-after": w.ready.String(),
			"sandbox.tidekeeper.dev/terminated-after":       terminated.String(),
		}
		template.Spec.NodeSelector = map[string]string{tidekeeperv1.RoleLabelPrefix + a.pool: ""}
		template.Spec.Containers[0].Resources.Requests = corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse("500m"), corev1.ResourceMemory: resource.MustParse("1Gi"),
		}
		must(t, w.Create(t.Context(), d))
		if a.budget != nil {
			budget := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: a.Name, Namespace: d.Namespace}, Spec: *a.budget}
			budget.Spec.Selector = d.Spec.Selector
			must(t, w.Create(t.Context(), budget))
		}
	}
}

// agent returns a DaemonSet whose pods stay on a node that is drained, as those of a network plugin.
func agent() *appsv1.DaemonSet {
	labels := map[string]string{"name": "agent"}
	spec := *framework.App.DeepCopy()
	spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
	return &appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Name: "agent", Namespace: metav1.NamespaceSystem},
		Spec: appsv1.DaemonSetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: spec},
		},
	}
}

// restore brings back the state that was saved.
func (w *world) restore(t *testing.T) {
	t.Helper()
	w.Sandbox(t, "snapshot", "restore", w.snapshot)
	w.awaitComplete(t)
}

// awaitComplete waits until every workload has all its pods, ready and of the newest template, and
// until the controllers have seen it: the budgets know all pods.
func (w *world) awaitComplete(t *testing.T) {
	t.Helper()
	framework.EventuallyWithin(t, 2*framework.Patience, "all workloads have their pods", func() error {
		deployments, budgets := &appsv1.DeploymentList{}, &policyv1.PodDisruptionBudgetList{}
		if err := errors.Join(w.List(t.Context(), deployments), w.List(t.Context(), budgets)); err != nil {
			return err
		}
		for i := range deployments.Items {
			d := &deployments.Items[i]
			want, s := *d.Spec.Replicas, d.Status
			if s.ObservedGeneration != d.Generation || s.Replicas != want || s.ReadyReplicas != want || s.UpdatedReplicas != want {
				return fmt.Errorf("the Deployment %s has %d pods, of which %d are ready and %d are up to date, want %d", d.Name, s.Replicas, s.ReadyReplicas, s.UpdatedReplicas, want)
			}
		}
		for i := range budgets.Items {
			b := &budgets.Items[i]
			at := slices.IndexFunc(w.applications, func(a application) bool { return a.Name == b.Name })
			if replicas := w.applications[at].Replicas; int(b.Status.CurrentHealthy) != replicas || len(b.Status.DisruptedPods) > 0 {
				return fmt.Errorf("the PodDisruptionBudget %s knows %d healthy pods and %d that are evicted, want %d", b.Name, b.Status.CurrentHealthy, len(b.Status.DisruptedPods), replicas)
			}
		}
		return nil
	})
}

// workloads returns the workloads of the applications.
func (w *world) workloads() []Workload {
	all := make([]Workload, len(w.applications))
	for i, a := range w.applications {
		all[i] = a.Workload
	}
	return all
}

// pods returns the number of pods of all workloads.
func (w *world) pods() int {
	pods := 0
	for _, a := range w.applications {
		pods += a.Replicas
	}
	return pods
}
