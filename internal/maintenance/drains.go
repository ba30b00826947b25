// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package maintenance

import (
	"maps"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/drain"
	"tidekeeper.dev/tidekeeper/internal/maintenance/decision"
	"tidekeeper.dev/tidekeeper/internal/maintenance/moves"
)

// drains holds the state of the pods on nodes that are being drained, or are waiting to become
// ready again. It exists only in memory, and is restored from the API server after a restart of the
// process.
type drains struct {
	clock clock.PassiveClock

	mu     sync.Mutex
	byNode map[string]*drainOf
}

// drainOf holds the state of the pods on a node.
type drainOf struct {
	maintenance string
	uid         types.UID
	// start is the time at which the drain began. It identifies the restarts requested for the
	// drain.
	start time.Time
	// moving is true if the pods on the node must be moved now.
	moving bool
	// looked is the time at which the pods on the node were last listed. pauseFor is the minimum
	// time until they are listed again because of an event.
	looked   time.Time
	pauseFor time.Duration
	// namespaces is the set of namespaces of the pods that had to leave when they were last listed.
	namespaces sets.Set[string]
	// leaving is the set of these pods that have not been deleted since.
	leaving sets.Set[types.UID]
	// state is the last known state of the pods; nil if unknown.
	state *decision.Drain
	// refused holds the refused evictions, by the UID of the pod, and notRequested the refused
	// requests for restarts, by the Deployment.
	refused      refusals[types.UID]
	notRequested refusals[types.NamespacedName]
	// doubtful is true if the node on the API server is not cordoned for the NodeMaintenance,
	// unlike in the cache.
	doubtful bool
}

func newDrains(c clock.PassiveClock) *drains { return &drains{clock: c, byNode: map[string]*drainOf{}} }

// watch sets the nodes of a NodeMaintenance whose pods must be observed, and the subset `moving`
// whose pods must be moved. It returns the nodes whose pods must be checked now, because their
// state is unknown or because they were added to or removed from the subset.
func (d *drains) watch(maintenance string, status *tidekeeperv1.NodeMaintenanceStatus, watched, moving []string) (changed []string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for node, of := range d.byNode {
		if of.maintenance == maintenance && !slices.Contains(watched, node) {
			delete(d.byNode, node)
		}
	}
	for _, node := range watched {
		p := status.Nodes[node]
		of := d.byNode[node]
		if of == nil || of.uid != p.UID || of.maintenance != maintenance || !of.start.Equal(p.StartTime.Time) {
			of = &drainOf{maintenance: maintenance, uid: p.UID, start: p.StartTime.Time, pauseFor: lookPause, refused: refusals[types.UID]{}, notRequested: refusals[types.NamespacedName]{}}
			d.byNode[node] = of
		}
		if moves := slices.Contains(moving, node); moves != of.moving || of.state == nil {
			of.moving = moves
			changed = append(changed, node)
		}
	}
	return changed
}

// forget drops the nodes of a NodeMaintenance.
func (d *drains) forget(maintenance string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for node, of := range d.byNode {
		if of.maintenance == maintenance {
			delete(d.byNode, node)
		}
	}
}

// states returns the states of the pods on a NodeMaintenance's nodes, keyed by node.
func (d *drains) states(maintenance string) map[string]decision.Drain {
	d.mu.Lock()
	defer d.mu.Unlock()
	states := map[string]decision.Drain{}
	for node, of := range d.byNode {
		if of.maintenance == maintenance && of.state != nil {
			states[node] = *of.state
		}
	}
	return states
}

// look records that the pods on a node are listed now, and returns a copy of their state. It
// returns false if the pods on the node are not observed.
func (d *drains) look(node string) (drainOf, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	of := d.byNode[node]
	if of == nil {
		return drainOf{}, false
	}
	of.looked = d.clock.Now()
	copied := *of
	copied.refused, copied.notRequested = maps.Clone(of.refused), maps.Clone(of.notRequested)
	return copied, true
}

// set records the state of the pods on a node, unless the drain has ended. It reports whether the
// state has changed.
func (d *drains) set(node string, seen drainOf, state decision.Drain) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	of := d.byNode[node]
	if of == nil || of.uid != seen.uid || !of.start.Equal(seen.start) || of.state != nil && *of.state == state {
		return false
	}
	of.state = &state
	return true
}

// others lists the other nodes whose pods are being moved.
func (d *drains) others(node string) (names []string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for name, of := range d.byNode {
		if name != node && of.moving {
			names = append(names, name)
		}
	}
	return names
}

// firstRetry is the delay before a refused request for an eviction or a restart is retried. The
// delay doubles with each consecutive refusal, up to lastRetry.
const (
	firstRetry = 2 * time.Second
	lastRetry  = time.Minute
)

// refusals maps pods or Deployments to the last refusal of a request for them.
type refusals[K comparable] map[K]moves.Refused

// add records a refusal.
func (r refusals[K]) add(key K, reason string, now time.Time) {
	delay := firstRetry
	if last, again := r[key]; again {
		delay = min(lastRetry, 2*last.Again.Sub(last.At))
	}
	r[key] = moves.Refused{Reason: reason, At: now, Again: now.Add(delay)}
}

// update calls `do` with the state of a node that is being drained, while it holds the lock.
func (d *drains) update(node string, do func(*drainOf)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if of := d.byNode[node]; of != nil {
		do(of)
	}
}

// evicted records that the eviction of a pod was accepted, or the reason why it was refused.
func (d *drains) evicted(node string, pod types.UID, refusal string) {
	d.update(node, func(of *drainOf) {
		if refusal == "" {
			delete(of.refused, pod)
			return
		}
		of.refused.add(pod, refusal, d.clock.Now())
	})
}

// requested records that a restart of a Deployment was requested, or the reason why the request was
// refused.
func (d *drains) requested(node string, deployment types.NamespacedName, refusal string) {
	d.update(node, func(of *drainOf) {
		if refusal == "" {
			delete(of.notRequested, deployment)
			return
		}
		of.notRequested.add(deployment, refusal, d.clock.Now())
	})
}

// doubt records that a node on the API server is not cordoned for its NodeMaintenance, unlike in
// the cache.
func (d *drains) doubt(node string) {
	d.update(node, func(of *drainOf) { of.doubtful = true })
}

// doubted lists the nodes of a NodeMaintenance for which [drains.doubt] was called after the last
// call of doubted.
func (d *drains) doubted(maintenance string) (names []string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for node, of := range d.byNode {
		if of.maintenance == maintenance && of.doubtful {
			of.doubtful = false
			names = append(names, node)
		}
	}
	return names
}

const (
	// lookPause is the minimum time until the pods of a node are listed again because of an event.
	// If the last reconcile sent many read requests to the API server, the minimum is pausePerRead
	// for each of these requests instead.
	lookPause    = 250 * time.Millisecond
	pausePerRead = 20 * time.Millisecond
)

// pace sets the minimum time until the pods of a node are listed again, after a reconcile that sent
// the given number of read requests to the API server.
func (d *drains) pace(node string, reads int) {
	d.update(node, func(of *drainOf) { of.pauseFor = pauseAfter(reads) })
}

// enqueue queues the node of a changed pod if the node is being drained.
func (d *drains) enqueue(pod *corev1.Pod, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
	if pause, watched := d.pause(pod.Spec.NodeName); watched {
		queue.AddAfter(requestFor(pod.Spec.NodeName), pause)
	}
}

// enqueueDeleted queues the node of a deleted pod if the node is being drained, without a pause if it
// was the last pod that had to leave.
func (d *drains) enqueueDeleted(pod *corev1.Pod, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
	if d.left(pod) {
		queue.AddAfter(requestFor(pod.Spec.NodeName), 0)
		return
	}
	d.enqueue(pod, queue)
}

// left records that a pod was deleted. It reports whether the pod was the last one that had to leave
// its node when the pods were last listed. There is therefore at most one such pod for each list.
func (d *drains) left(pod *corev1.Pod) (last bool) {
	d.update(pod.Spec.NodeName, func(of *drainOf) {
		last = of.leaving.Has(pod.UID) && of.leaving.Len() == 1
		of.leaving.Delete(pod.UID)
	})
	return last
}

// enqueueWaiting queues the nodes that are being drained of pods in a namespace. A
// PodDisruptionBudget, or a restart that moves pods, has changed in that namespace.
func (d *drains) enqueueWaiting(namespace string, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
	for _, node := range d.drainingIn(namespace) {
		if pause, watched := d.pause(node); watched {
			queue.AddAfter(requestFor(node), pause)
		}
	}
}

// drainingIn lists the nodes that pods of a namespace have to leave now.
func (d *drains) drainingIn(namespace string) (nodes []string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for node, of := range d.byNode {
		if of.moving && of.namespaces.Has(namespace) {
			nodes = append(nodes, node)
		}
	}
	return nodes
}

// listed records the pods that have to leave a node, and their namespaces.
func (d *drains) listed(node string, pods []corev1.Pod) {
	namespaces, leaving := sets.New[string](), sets.New[types.UID]()
	for i := range pods {
		if drain.Leaves(&pods[i]) {
			namespaces.Insert(pods[i].Namespace)
			leaving.Insert(pods[i].UID)
		}
	}
	d.update(node, func(of *drainOf) { of.namespaces, of.leaving = namespaces, leaving })
}

// pause returns how long to wait before the pods of a node are listed again. It returns false if
// the node is not being drained.
func (d *drains) pause(node string) (time.Duration, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	of := d.byNode[node]
	if of == nil {
		return 0, false
	}
	since := d.clock.Now().Sub(of.looked)
	if since < 0 || since >= of.pauseFor {
		return 0, true
	}
	return of.pauseFor - since, true
}
