// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"crypto/sha256"
	"maps"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/cli/cmdutil"
	"tidekeeper.dev/tidekeeper/internal/workload"
)

// keeper reduces watched objects to the fields that the pages use. Most watched objects are pods.
// Pods of the same owner are mostly equal, so they share their equal parts in memory.
type keeper struct {
	mu sync.Mutex
	// siblings holds the parts of a pod that other pods can share, keyed by the UID of the pods'
	// owner.
	siblings map[types.UID]*sharedParts
}

// mostOwners is the number of owners in siblings at which the map is cleared, to limit its memory.
const mostOwners = 50_000

// sharedParts holds the parts of a pod that other pods of the same owner can share in memory, with
// hashes of the encoded parts.
type sharedParts struct {
	metaSum, specSum [sha256.Size]byte
	meta             metav1.ObjectMeta
	spec             corev1.PodSpec
}

// keep drops the fields of a watched object that no page uses, such as the environments of
// containers.
func (k *keeper) keep(o any) (any, error) {
	object, ok := o.(metav1.Object)
	if !ok {
		return o, nil
	}
	changed := metav1.NewTime(workload.ChangedAt(object))
	object.SetManagedFields(nil)
	switch object := o.(type) {
	case *corev1.Pod:
		k.keepPod(object)
	case *corev1.Node:
		object.Status.Images = nil
	case *tidekeeperv1.ScheduledRestart:
		cmdutil.KeepRestart(object)
	case *tidekeeperv1.NodePool, *tidekeeperv1.Freeze, *tidekeeperv1.NodeMaintenance, *corev1.Namespace:
	default:
		w := o.(workload.Object)
		if kind, err := workload.Of(w); err == nil && kind.Trim != nil {
			w.SetManagedFields([]metav1.ManagedFieldsEntry{{Time: &changed}}) // [workload.LastProgress] needs the time of the last change.
			return o, kind.Trim(w)
		}
	}
	return o, nil
}

// keepPod drops most pod fields that do not describe the pod's requests, scheduling constraints or
// start-up.
func (k *keeper) keepPod(pod *corev1.Pod) {
	spec, status := &pod.Spec, &pod.Status
	pod.ObjectMeta = metav1.ObjectMeta{
		Name: pod.Name, Namespace: pod.Namespace, UID: pod.UID, ResourceVersion: pod.ResourceVersion, Labels: pod.Labels, OwnerReferences: pod.OwnerReferences,
		CreationTimestamp: pod.CreationTimestamp, DeletionTimestamp: pod.DeletionTimestamp,
	}
	for _, containers := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for i := range containers {
			keepContainer(&containers[i])
		}
	}
	spec.Volumes = slices.Clip(slices.DeleteFunc(spec.Volumes, isPlain))
	if len(spec.Volumes) == 0 {
		spec.Volumes = nil
	}
	spec.SecurityContext, spec.DNSConfig, spec.HostAliases, spec.EphemeralContainers = nil, nil, nil, nil
	status.HostIPs, status.PodIPs, status.EphemeralContainerStatuses = nil, nil, nil
	keepStatuses(status.InitContainerStatuses, spec.InitContainers)
	keepStatuses(status.ContainerStatuses, spec.Containers)
	k.share(pod)
}

// aProbe replaces every probe of a container, because the pages only show whether the container has
// the probe.
var aProbe = &corev1.Probe{}

func keepContainer(c *corev1.Container) {
	c.Env, c.EnvFrom, c.Command, c.Args, c.VolumeMounts, c.VolumeDevices, c.Lifecycle, c.SecurityContext = nil, nil, nil, nil, nil, nil, nil, nil
	for _, probe := range []**corev1.Probe{&c.StartupProbe, &c.ReadinessProbe, &c.LivenessProbe} {
		if *probe != nil {
			*probe = aProbe
		}
	}
}

// isPlain reports whether a volume has a type that does not restrict the nodes on which the pod can
// run.
func isPlain(v corev1.Volume) bool {
	return v.Projected != nil || v.ConfigMap != nil || v.Secret != nil || v.DownwardAPI != nil || v.EmptyDir != nil || v.HostPath != nil
}

// keepStatuses drops unused fields of container statuses. It also drops the resources in a status
// if they equal the resources in the container's spec.
func keepStatuses(statuses []corev1.ContainerStatus, containers []corev1.Container) {
	for i := range statuses {
		s := &statuses[i]
		s.ImageID, s.ContainerID, s.VolumeMounts, s.User, s.AllocatedResourcesStatus = "", "", nil, nil, nil
		j := slices.IndexFunc(containers, func(c corev1.Container) bool { return c.Name == s.Name })
		if j < 0 {
			continue
		}
		c := &containers[j]
		s.Name, s.Image = c.Name, c.Image
		if s.Resources != nil && sameAmounts(s.Resources.Requests, c.Resources.Requests) && sameAmounts(s.AllocatedResources, c.Resources.Requests) {
			s.AllocatedResources, s.Resources = nil, nil
		}
	}
}

func sameAmounts(a, b corev1.ResourceList) bool {
	return maps.EqualFunc(a, b, func(a, b resource.Quantity) bool { return a.Cmp(b) == 0 })
}

// share replaces parts of a pod by the equal parts of another pod with the same owner, so that both
// use the same memory.
func (k *keeper) share(pod *corev1.Pod) {
	owner := metav1.GetControllerOf(pod)
	if owner == nil {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.siblings) >= mostOwners {
		k.siblings = nil
	}
	if k.siblings == nil {
		k.siblings = map[types.UID]*sharedParts{}
	}
	known := k.siblings[owner.UID]
	if known == nil {
		known = &sharedParts{}
		k.siblings[owner.UID] = known
	}
	meta := metav1.ObjectMeta{Labels: pod.Labels, OwnerReferences: pod.OwnerReferences}
	if sum, ok := sumOf(&meta); ok && sum == known.metaSum {
		pod.Labels, pod.OwnerReferences = known.meta.Labels, known.meta.OwnerReferences
	} else {
		known.meta, known.metaSum = meta, sum
	}
	from := &pod.Spec
	spec := corev1.PodSpec{
		Containers: from.Containers, InitContainers: from.InitContainers, Tolerations: from.Tolerations,
		NodeSelector: from.NodeSelector, Affinity: from.Affinity, Volumes: from.Volumes,
	}
	if sum, ok := sumOf(&spec); ok && sum == known.specSum {
		from.Containers, from.InitContainers, from.Tolerations = known.spec.Containers, known.spec.InitContainers, known.spec.Tolerations
		from.NodeSelector, from.Affinity, from.Volumes = known.spec.NodeSelector, known.spec.Affinity, known.spec.Volumes
	} else {
		known.spec, known.specSum = spec, sum
	}
}

// sumOf returns a hash of the protobuf encoding of an object.
func sumOf(o interface{ Marshal() ([]byte, error) }) (sum [sha256.Size]byte, ok bool) {
	data, err := o.Marshal()
	return sha256.Sum256(data), err == nil
}
