// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package room

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// wantVolumes gives the copied pod volumes: those that copies share, and those that each copy brings.
func (w *world) wantVolumes() {
	switch n := w.IntN(40); {
	case n < 4:
	case n < 10:
		w.wantBound(oneOf(w, corev1.ReadWriteOnce, corev1.ReadWriteMany))
	case n < 13:
		w.wantBound(corev1.ReadWriteOncePod)
	case n < 16:
		w.wantUnbound()
	case n < 28:
		w.wantOwn(1 + w.IntN(2))
	case n < 35:
		w.wantBound(oneOf(w, corev1.ReadWriteOnce, corev1.ReadWriteMany))
		w.wantOwn(1)
	case n < 36:
		w.wantBroken()
	case n < 37:
		w.wantUncertain()
	default:
		w.wantShared()
	}
}

// wantBound gives the pod a bound claim.
func (w *world) wantBound(mode corev1.PersistentVolumeAccessMode) {
	for i := range 1 + w.IntN(4)/3 {
		name := fmt.Sprint("data-", i)
		driver := disks
		if mode == corev1.ReadWriteMany {
			driver = oneOf(w, disks, shares)
		}
		w.bound("shop", name, driver, mode, oneOf(w, w.nodes...))
		mount(w.copy, name)
		if w.chance(20) && len(w.pods) > 0 {
			// A running pod of the namespace may use it already.
			if pod := oneOf(w, w.pods...); pod.Namespace == "shop" {
				mount(pod, name)
			}
		}
	}
}

// wantShared gives the pod the claim that running pods of its workload share, if there is one.
func (w *world) wantShared() {
	for _, c := range w.volumes.Claims {
		if c.Namespace == "shop" && c.Name == "shared-"+w.copy.Labels["app"] {
			mount(w.copy, c.Name)
		}
	}
}

// wantUnbound gives the pod a claim whose volume does not exist yet.
func (w *world) wantUnbound() {
	class := oneOf(w, classWait, classZones, classZones, classShares, classLocal)
	c := w.claim("shop", "data", claimSpec(class, oneOf(w, corev1.ReadWriteOnce, corev1.ReadWriteOncePod, corev1.ReadWriteOncePod)))
	mount(w.copy, c.Name)
	if class == classLocal {
		w.addFree(c.Spec)
	} else if w.chance(20) {
		c.Annotations = map[string]string{selectedNode: oneOf(w, w.nodes...).Name}
	}
}

// wantOwn gives the pod volumes that each copy brings.
func (w *world) wantOwn(volumes int) {
	prefix := ""
	if w.chance(40) {
		prefix = fmt.Sprintf("data-%s-", w.copy.Labels["app"])
	}
	for i := range volumes {
		spec := claimSpec(oneOf(w, classWait, classWait, classZones, classZones, classShares), oneOf(w, corev1.ReadWriteOnce, corev1.ReadWriteOncePod))
		if w.chance(10) {
			spec.StorageClassName = nil // The API server sets the default.
		}
		of := prefix
		if of != "" && i > 0 {
			of = "more-" + of
		}
		w.ephemeral(w.copy, of, spec)
		if of != "" && w.chance(10) {
			// A StatefulSet that had more replicas has left a claim.
			w.bound("shop", fmt.Sprint(of, firstOrdinal), disks, corev1.ReadWriteOnce, oneOf(w, w.nodes...))
		}
	}
}

// wantBroken gives the pod a claim with which it cannot run.
func (w *world) wantBroken() {
	mount(w.copy, "data")
	switch w.IntN(6) {
	case 0: // The claim does not exist.
	case 1:
		c := w.bound("shop", "data", disks, corev1.ReadWriteOnce, oneOf(w, w.nodes...))
		c.DeletionTimestamp, c.Finalizers = new(metav1.Now()), []string{"kubernetes.io/pvc-protection"}
	case 2:
		w.bound("shop", "data", disks, corev1.ReadWriteOnce, oneOf(w, w.nodes...)).Status.Phase = corev1.ClaimLost
	case 3:
		w.claim("shop", "data", claimSpec(classNow, corev1.ReadWriteOnce))
	case 4:
		w.bound("shop", "data", disks, corev1.ReadWriteOnce, oneOf(w, w.nodes...)).Annotations = nil
	default:
		w.claim("shop", "data", claimSpec("missing", corev1.ReadWriteOnce))
	}
}

// wantUncertain gives the pod volumes for which the number of copies is an upper bound.
func (w *world) wantUncertain() {
	class := oneOf(w, classLocal, classNow)
	spec := claimSpec(class, corev1.ReadWriteOnce)
	w.ephemeral(w.copy, "", spec)
	if class == classLocal {
		w.addFree(spec)
	}
}

// addFree adds volumes that the scheduler can bind to claims.
func (w *world) addFree(of corev1.PersistentVolumeClaimSpec) {
	for i := range w.IntN(5) {
		v := w.volume(fmt.Sprint("free-", i), disks, &of)
		if w.chance(90) {
			v.Spec.NodeAffinity = onlyOn(corev1.LabelHostname, oneOf(w, w.nodes...).Name)
		}
		if w.chance(15) {
			v.Spec.Capacity = corev1.ResourceList{corev1.ResourceStorage: *of.Resources.Requests.Storage()}
			v.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadOnlyMany}
		}
	}
}
