// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package kubelet simulates the kubelets of all of a sandbox's nodes in a single process. Pure
// functions determine the next step of a pod (step.go) and compute its status and Events
// (status.go, events.go). The other files watch, wait and write.
package kubelet

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"

	"tidekeeper.dev/tidekeeper/sandbox/internal/namelock"
	"tidekeeper.dev/tidekeeper/sandbox/internal/node"
)

// workers is the number of goroutines that write the statuses of pods, and the number of goroutines
// that write the statuses of nodes. It is enough to keep an API server on a few cores busy.
const workers = 16

// programPeriod is the interval at which a simulated kubelet checks whether a program that runs as
// a pod has exited.
const programPeriod = time.Second

const byNode = "node"

// Kubelets simulates the kubelets of all simulated nodes.
type Kubelets struct {
	client  kubernetes.Interface
	release string
	delays  Delays
	now     func() time.Time

	nodes     corelisters.NodeLister
	pods      cache.Indexer
	nodeQueue workqueue.TypedRateLimitingInterface[string]
	podQueue  workqueue.TypedRateLimitingInterface[types.NamespacedName]
	addresses *addresses
	clocks    *clocks
	leases    *leases
	devices   *devices
	events    *recorder
}

// Run simulates kubelets of the given Kubernetes version, such as v1.36.3, until the context is
// done. It records Events with the separate client "events", so that Events do not delay status
// updates. If that client is nil, no Events are recorded.
func Run(ctx context.Context, client kubernetes.Interface, release string, events typedcorev1.EventsGetter, delays Delays) error {
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithTransform(withoutManagedFields))
	nodes, pods := factory.Core().V1().Nodes(), factory.Core().V1().Pods()
	k := &Kubelets{
		client:    client,
		release:   release,
		delays:    delays,
		now:       time.Now,
		nodes:     nodes.Lister(),
		pods:      pods.Informer().GetIndexer(),
		nodeQueue: workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[string]()),
		podQueue:  workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[types.NamespacedName]()),
		addresses: newAddresses(),
		clocks:    newClocks(),
		leases:    newLeases(client),
		devices:   newDevices(client),
		events:    newRecorder(events),
	}
	// Stop the recorder after all goroutines that record Events have returned.
	defer k.events.stop()
	if err := pods.Informer().AddIndexers(cache.Indexers{byNode: func(obj any) ([]string, error) {
		return []string{obj.(*corev1.Pod).Spec.NodeName}, nil
	}}); err != nil {
		return err
	}
	nodesSynced, err := nodes.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { k.nodeChanged(nil, obj.(*corev1.Node)) },
		UpdateFunc: func(old, obj any) { k.nodeChanged(old.(*corev1.Node), obj.(*corev1.Node)) },
		DeleteFunc: func(obj any) {
			if d, ok := obj.(cache.DeletedFinalStateUnknown); ok {
				obj = d.Obj
			}
			name := obj.(*corev1.Node).Name
			k.leases.forget(name)
			k.devices.forget(name)
		},
	})
	if err != nil {
		return err
	}
	podsSynced, err := pods.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { k.podChanged(obj.(*corev1.Pod)) },
		UpdateFunc: func(_, obj any) { k.podChanged(obj.(*corev1.Pod)) },
		DeleteFunc: func(obj any) {
			if d, ok := obj.(cache.DeletedFinalStateUnknown); ok {
				obj = d.Obj
			}
			k.podGone(obj.(*corev1.Pod))
		},
	})
	if err != nil {
		return err
	}
	factory.Start(ctx.Done())
	if !cache.WaitForCacheSync(ctx.Done(), nodesSynced.HasSynced, podsSynced.HasSynced) {
		return ctx.Err()
	}
	var working sync.WaitGroup
	for range workers {
		working.Go(func() { work(ctx, k.podQueue, k.syncPod) })
		working.Go(func() { work(ctx, k.nodeQueue, k.syncNode) })
	}
	go k.leases.run(ctx)
	<-ctx.Done()
	k.podQueue.ShutDown()
	k.nodeQueue.ShutDown()
	working.Wait()
	factory.Shutdown()
	return nil
}

// withoutManagedFields drops managedFields from objects, which halves the size of the cache. If a
// written object has no managedFields, the API server keeps the existing managedFields.
func withoutManagedFields(obj any) (any, error) {
	if o, ok := obj.(metav1.Object); ok {
		o.SetManagedFields(nil)
	}
	return obj, nil
}

func work[T comparable](ctx context.Context, queue workqueue.TypedRateLimitingInterface[T], sync func(context.Context, T) (time.Duration, error)) {
	for {
		key, shutdown := queue.Get()
		if shutdown {
			return
		}
		after, err := sync(ctx, key)
		switch {
		case err != nil && ctx.Err() == nil:
			// Do not log a conflict, because the watch is about to deliver the current object for
			// the next attempt.
			if !apierrors.IsConflict(err) {
				klog.ErrorS(err, "Trying again", "object", key)
			}
			queue.AddRateLimited(key)
		case after > 0:
			queue.Forget(key)
			queue.AddAfter(key, after)
		default:
			queue.Forget(key)
		}
		queue.Done(key)
	}
}

func (k *Kubelets) nodeChanged(old, n *corev1.Node) {
	if isReal(n) {
		k.leases.forget(n.Name)
		return
	}
	k.leases.keep(n)
	k.nodeQueue.Add(n.Name)
	// Sync all pods of the node if it is new, or if its kubelet has just begun or stopped ignoring
	// pods.
	if old != nil && silent(old) == silent(n) {
		return
	}
	pods, err := k.pods.ByIndex(byNode, n.Name)
	if err != nil {
		return
	}
	for _, pod := range pods {
		k.podChanged(pod.(*corev1.Pod))
	}
}

func (k *Kubelets) podChanged(pod *corev1.Pod) {
	k.addresses.keep(pod.UID, pod.Status.PodIP)
	if pod.Spec.NodeName != "" {
		k.podQueue.Add(types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name})
	}
}

// podGone releases the resources of a deleted pod. If the pod was force-deleted, it did not pass
// through the terminate step, so podGone also records the Killing Events.
func (k *Kubelets) podGone(pod *corev1.Pod) {
	k.addresses.release(pod.UID)
	last := k.clocks.forget(pod.UID)
	if n, err := k.nodes.Get(pod.Spec.NodeName); err == nil && !isReal(n) && !silent(n) && last != string(terminate) {
		k.events.record(n.Name, pod, killingOf(pod))
	}
}

// isReal reports whether a node has a real kubelet.
func isReal(n *corev1.Node) bool {
	_, marked := n.Labels[node.RealLabel]
	return marked
}

// silent reports whether a node has the annotation NotReadyAnnotation, which makes its simulated
// kubelet report that the node is not ready, and ignore the node's pods.
func silent(n *corev1.Node) bool {
	_, told := n.Annotations[node.NotReadyAnnotation]
	return told
}

// syncNode publishes a node's devices, and writes the node's status if its readiness must change or
// the next heartbeat (the periodic report of an unchanged status) is due. Otherwise, it returns the
// time until the next heartbeat.
func (k *Kubelets) syncNode(ctx context.Context, name string) (time.Duration, error) {
	n, err := k.nodes.Get(name)
	if err != nil || isReal(n) {
		return 0, ignoreNotFound(err)
	}
	if err := k.devices.publish(ctx, n); err != nil {
		return 0, err
	}
	if node.Reported(n) && node.Ready(n) != silent(n) {
		if left := node.HeartbeatEvery - k.now().Sub(node.Heartbeat(n)); left > 0 {
			return left, nil
		}
	}
	n = n.DeepCopy()
	n.Status = node.Status(n, k.release, k.now())
	_, err = k.client.CoreV1().Nodes().UpdateStatus(ctx, n, metav1.UpdateOptions{})
	return 0, ignoreNotFound(err)
}

// syncPod performs the next step of a pod if the step is due. Otherwise, it returns the time until
// the step is due, or 0 if there is no next step.
func (k *Kubelets) syncPod(ctx context.Context, key types.NamespacedName) (time.Duration, error) {
	obj, exists, err := k.pods.GetByKey(key.String())
	if err != nil || !exists {
		return 0, err
	}
	pod := obj.(*corev1.Pod)
	n, err := k.nodes.Get(pod.Spec.NodeName)
	if err != nil || isReal(n) || silent(n) {
		// Do nothing: the pod has not been scheduled yet, or its node has a real kubelet or ignores
		// pods.
		return 0, ignoreNotFound(err)
	}
	program, isProgram := pod.Annotations[ProgramAnnotation]
	if isProgram && !namelock.Held(program) {
		return 0, k.remove(ctx, pod)
	}
	plan, mistake := planOf(pod, k.delays)
	s, delay := next(pod, plan, mistake)
	if s == none && isProgram {
		return programPeriod, nil
	}
	if s == none {
		return 0, nil
	}
	now := k.now()
	since, first := k.clocks.since(pod.UID, turn(pod, s), now)
	if first && s == terminate {
		k.events.record(n.Name, pod, killingOf(pod))
	}
	waited := now.Sub(since)
	if waited < delay {
		return delay - waited, nil
	}
	if s == remove {
		return 0, k.remove(ctx, pod)
	}
	return 0, k.report(ctx, n, pod, plan, mistake, s, waited)
}

// remove deletes the Pod object of a terminated pod from the API server.
func (k *Kubelets) remove(ctx context.Context, pod *corev1.Pod) error {
	return ignoreNotFound(k.client.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{
		GracePeriodSeconds: new(int64(0)),
		// Do not delete a newer pod with the same name.
		Preconditions: &metav1.Preconditions{UID: &pod.UID},
	}))
}

// report writes a pod's status after the step s, and records the step's Events. The error "mistake"
// is nil unless the pod has invalid annotations.
func (k *Kubelets) report(ctx context.Context, n *corev1.Node, before *corev1.Pod, plan plan, mistake error, s step, waited time.Duration) error {
	hostIP := internalIP(n)
	podIP := hostIP
	if !before.Spec.HostNetwork {
		podIP = k.addresses.of(before.UID)
	}
	message := ""
	if mistake != nil {
		message = mistake.Error()
	}
	readyAtOnce := plan.delays.Ready == 0 && gatesOpen(before)
	after := before.DeepCopy()
	after.Status = apply(before, s, hostIP, podIP, message, readyAtOnce, k.now())
	if _, err := k.client.CoreV1().Pods(after.Namespace).UpdateStatus(ctx, after, metav1.UpdateOptions{}); err != nil {
		return ignoreNotFound(fmt.Errorf("%s: %w", s, err))
	}
	k.events.record(n.Name, after, eventsOf(before, after, waited))
	return nil
}

func internalIP(n *corev1.Node) string {
	for _, a := range n.Status.Addresses {
		if a.Type == corev1.NodeInternalIP {
			return a.Address
		}
	}
	return ""
}

func ignoreNotFound(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
