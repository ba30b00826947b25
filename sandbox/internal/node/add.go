// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"fmt"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
)

// firstIP is the lowest address of simulated nodes. Nothing listens on the addresses of simulated
// nodes.
var firstIP = netip.MustParseAddr("172.16.0.1")

// writers is the number of nodes that are created concurrently, enough to keep an API server on a
// few cores busy.
const writers = 16

// Add creates nodes named PREFIX-1, PREFIX-2 and so on, and skips existing names. It returns the
// names of the new nodes once pods can be scheduled on them.
func Add(ctx context.Context, client kubernetes.Interface, prefix string, count int, template Template) ([]string, error) {
	if template.Devices != "" {
		if _, err := client.Discovery().ServerResourcesForGroupVersion(resourcev1.SchemeGroupVersion.String()); err != nil {
			return nil, fmt.Errorf("this release of Kubernetes has no devices: %w", err)
		}
	}
	names, ips, err := free(ctx, client, prefix, count)
	if err != nil {
		return nil, err
	}
	server, err := client.Discovery().ServerVersion()
	if err != nil {
		return nil, fmt.Errorf("read the version of the API server: %w", err)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var next atomic.Int64
	var wg sync.WaitGroup
	for range min(writers, count) {
		wg.Go(func() {
			for ctx.Err() == nil {
				i := int(next.Add(1)) - 1
				if i >= count {
					return
				}
				n := template.New(names[i], ips[i], server.GitVersion, time.Now())
				if _, err := client.CoreV1().Nodes().Create(ctx, n, metav1.CreateOptions{}); err != nil {
					cancel(fmt.Errorf("create node %s: %w", n.Name, explain(err)))
				}
			}
		})
	}
	wg.Wait()
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if err := waitSchedulable(ctx, client, names); err != nil {
		return names, err
	}
	return names, waitDevices(ctx, client, names, template)
}

// waitDevices waits until the devices of the given nodes are published.
func waitDevices(ctx context.Context, client kubernetes.Interface, names []string, template Template) error {
	if template.Devices == "" {
		return nil
	}
	all, err := ParseDevices(template.Devices)
	if err != nil {
		return err
	}
	added := sets.New(names...)
	err = wait.PollUntilContextCancel(ctx, 50*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		list, err := client.ResourceV1().ResourceSlices().List(ctx, metav1.ListOptions{})
		if err != nil {
			return false, fmt.Errorf("list ResourceSlices: %w", err)
		}
		published := 0
		for _, s := range list.Items {
			if s.Spec.NodeName != nil && added.Has(*s.Spec.NodeName) {
				published++
			}
		}
		return published >= len(names)*len(Drivers(all)), nil
	})
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// explain shortens an API error to the field and the message of its first cause. It omits the name
// of the node, because the caller adds that name.
func explain(err error) error {
	if status, ok := err.(apierrors.APIStatus); ok && status.Status().Details != nil && len(status.Status().Details.Causes) > 0 {
		cause := status.Status().Details.Causes[0]
		return fmt.Errorf("%s: %s", cause.Field, cause.Message)
	}
	return err
}

// free returns unused names and addresses for the given number of nodes.
func free(ctx context.Context, client kubernetes.Interface, prefix string, count int) ([]string, []netip.Addr, error) {
	list, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, nil, fmt.Errorf("list nodes: %w", err)
	}
	taken := sets.New[string]()
	for _, n := range list.Items {
		taken.Insert(n.Name)
		for _, a := range n.Status.Addresses {
			taken.Insert(a.Address)
		}
	}
	var names []string
	for i := 1; len(names) < count; i++ {
		if name := fmt.Sprintf("%s-%d", prefix, i); !taken.Has(name) {
			names = append(names, name)
		}
	}
	var ips []netip.Addr
	for ip := firstIP; len(ips) < count; ip = ip.Next() {
		if !taken.Has(ip.String()) {
			ips = append(ips, ip)
		}
	}
	return names, ips, nil
}

// waitSchedulable waits until pods can be scheduled on all given nodes. It uses a watch, because
// polling a thousand nodes would cost more than adding them.
func waitSchedulable(ctx context.Context, client kubernetes.Interface, names []string) error {
	missing := sets.New(names...)
	for {
		// A watch without a resourceVersion starts with events for all existing nodes.
		w, err := client.CoreV1().Nodes().Watch(ctx, metav1.ListOptions{})
		if err != nil {
			return fmt.Errorf("watch nodes: %w", err)
		}
		for event := range w.ResultChan() {
			if n, ok := event.Object.(*corev1.Node); ok && Schedulable(n) {
				missing.Delete(n.Name)
			}
			if len(missing) == 0 {
				break
			}
		}
		w.Stop()
		if len(missing) == 0 {
			return nil
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
}

// SetNotReady makes a node's simulated kubelet report that the node is not ready, with the given
// message, or that it is ready again. It waits until the kubelet has done so.
func SetNotReady(ctx context.Context, client kubernetes.Interface, name string, notReady bool, message string) error {
	n, err := client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	if _, marked := n.Labels[RealLabel]; marked {
		return fmt.Errorf("node %s has a real kubelet, which reports its true state: see 'sandbox component kill %s'", name, name)
	}
	value := "null"
	if notReady {
		value = fmt.Sprintf("%q", message)
	}
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%s}}}`, NotReadyAnnotation, value)
	_, err = client.CoreV1().Nodes().Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{})
	if err != nil {
		return err
	}
	return wait.PollUntilContextCancel(ctx, 50*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		n, err := client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return false, err
		}
		return err == nil && Ready(n) != notReady, nil
	})
}
