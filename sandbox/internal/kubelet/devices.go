// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"context"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"

	"tidekeeper.dev/tidekeeper/sandbox/internal/node"
)

// devices publishes the simulated devices of nodes as ResourceSlices, as the drivers on a node do
// through its kubelet.
type devices struct {
	client kubernetes.Interface

	mu sync.Mutex
	// published maps nodes to the devices that were published last.
	published map[string]publication
}

// publication is the value of the annotation [node.DevicesAnnotation] that was published for a node,
// and its drivers.
type publication struct {
	node    types.UID
	text    string
	drivers []string
}

func newDevices(client kubernetes.Interface) *devices {
	return &devices{client: client, published: map[string]publication{}}
}

// forget forgets the devices of a deleted node. The garbage collector deletes the ResourceSlices.
func (d *devices) forget(node string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.published, node)
}

// last returns what was published for the node; nothing if another node had the name.
func (d *devices) last(n *corev1.Node) publication {
	d.mu.Lock()
	defer d.mu.Unlock()
	last := d.published[n.Name]
	if last.node != n.UID {
		return publication{node: n.UID}
	}
	return last
}

// publish writes the ResourceSlices of a node, and the DeviceClasses of their drivers, if the node's
// annotation has changed. It does nothing if the API server does not serve ResourceSlices.
func (d *devices) publish(ctx context.Context, n *corev1.Node) error {
	last, text := d.last(n), n.Annotations[node.DevicesAnnotation]
	if last.text == text {
		return nil
	}
	slices, err := node.ResourceSlices(n)
	if err != nil {
		klog.ErrorS(err, "The devices are ignored", "node", n.Name)
	}
	now := publication{node: n.UID, text: text}
	for _, slice := range slices {
		err := d.write(ctx, slice)
		if apierrors.IsInvalid(err) {
			klog.ErrorS(err, "The devices are ignored", "node", n.Name) // Trying again would hold up the node's status.
			continue
		}
		if err != nil {
			return fmt.Errorf("publish devices of %s: %w", slice.Spec.Driver, err)
		}
		now.drivers = append(now.drivers, slice.Spec.Driver)
	}
	for _, driver := range last.drivers {
		if !contains(slices, driver) {
			err := d.client.ResourceV1().ResourceSlices().Delete(ctx, node.SliceName(n.Name, driver), metav1.DeleteOptions{})
			if ignoreNotFound(err) != nil {
				return err
			}
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.published[n.Name] = now
	return nil
}

func contains(slices []*resourcev1.ResourceSlice, driver string) bool {
	for _, s := range slices {
		if s.Spec.Driver == driver {
			return true
		}
	}
	return false
}

// write creates or updates a ResourceSlice. With a new one, it creates the DeviceClass of the driver
// unless there is one.
func (d *devices) write(ctx context.Context, slice *resourcev1.ResourceSlice) error {
	_, err := d.client.ResourceV1().ResourceSlices().Create(ctx, slice, metav1.CreateOptions{})
	switch {
	case apierrors.IsAlreadyExists(err):
		return d.update(ctx, slice)
	case err != nil:
		return ignoreNotFound(err)
	}
	_, err = d.client.ResourceV1().DeviceClasses().Create(ctx, node.DeviceClass(slice.Spec.Driver), metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

// update changes the devices of a ResourceSlice that exists, if they differ.
func (d *devices) update(ctx context.Context, slice *resourcev1.ResourceSlice) error {
	old, err := d.client.ResourceV1().ResourceSlices().Get(ctx, slice.Name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	owner := metav1.GetControllerOfNoCopy(old)
	switch {
	case owner == nil || owner.UID != slice.OwnerReferences[0].UID:
		return fmt.Errorf("ResourceSlice %s is still that of an earlier node", old.Name)
	case equality.Semantic.DeepEqual(old.Spec.Devices, slice.Spec.Devices):
		return nil
	}
	old.Spec.Devices = slice.Spec.Devices
	old.Spec.Pool.Generation++
	_, err = d.client.ResourceV1().ResourceSlices().Update(ctx, old, metav1.UpdateOptions{})
	return err
}
