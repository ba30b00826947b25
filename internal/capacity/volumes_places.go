// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package capacity

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
)

// zones maps the zone and region labels of a volume to the zones and regions that can use it.
type zones map[string][]string

// topologyLabels maps the labels of volumes for zones and regions to the current name of the label.
var topologyLabels = map[string]string{
	corev1.LabelFailureDomainBetaZone: corev1.LabelTopologyZone, corev1.LabelFailureDomainBetaRegion: corev1.LabelTopologyRegion,
	corev1.LabelTopologyZone: corev1.LabelTopologyZone, corev1.LabelTopologyRegion: corev1.LabelTopologyRegion,
}

func newZones(of map[string]string) zones {
	z := zones{}
	for key := range topologyLabels {
		if value, has := of[key]; has {
			// A volume that several zones can use has all of them in one label.
			z[key] = strings.Split(value, "__")
		}
	}
	return z
}

// admit reports whether a node is in the zones and regions. As in the scheduler, a node without any
// such label is in all of them.
func (z zones) admit(n *corev1.Node) bool {
	has := false
	for key := range topologyLabels {
		_, labeled := n.Labels[key]
		has = has || labeled
	}
	if !has {
		return true
	}
	for key, values := range z {
		value, labeled := n.Labels[key]
		if !labeled {
			value, labeled = n.Labels[topologyLabels[key]]
		}
		if !labeled || !slices.Contains(values, value) {
			return false
		}
	}
	return true
}

// admittedBy returns a function that reports whether a volume with the given node affinity is
// usable on a node. As in the scheduler, only labels of nodes count.
func admittedBy(required *corev1.NodeSelector) func(n *corev1.Node) bool {
	selector := nodeaffinity.NewLazyErrorNodeSelector(required)
	return func(n *corev1.Node) bool {
		fits, err := selector.Match(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Labels: n.Labels}})
		return err == nil && fits
	}
}

// usableOn reports whether the node affinity of a volume admits a node.
func usableOn(pv *corev1.PersistentVolume, n *corev1.Node) bool {
	return pv.Spec.NodeAffinity == nil || pv.Spec.NodeAffinity.Required == nil || admittedBy(pv.Spec.NodeAffinity.Required)(n)
}

// allows reports whether a StorageClass with the given allowedTopologies creates volumes for a
// node.
func allows(terms []corev1.TopologySelectorTerm, n *corev1.Node) bool {
	return len(terms) == 0 || slices.ContainsFunc(terms, func(t corev1.TopologySelectorTerm) bool {
		return len(t.MatchLabelExpressions) > 0 && !slices.ContainsFunc(t.MatchLabelExpressions, func(r corev1.TopologySelectorLabelRequirement) bool {
			value, has := n.Labels[r.Key]
			return !has || !slices.Contains(r.Values, value)
		})
	})
}

// satisfies reports whether a free volume of the claim's StorageClass can be bound to the claim.
func satisfies(pv *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim) bool {
	wanted, has := claim.Spec.Resources.Requests[corev1.ResourceStorage], pv.Spec.Capacity[corev1.ResourceStorage]
	of := pv.Spec.ClaimRef
	switch {
	case of != nil && (of.Namespace != claim.Namespace || of.Name != claim.Name), has.Cmp(wanted) < 0, isBlock(pv.Spec.VolumeMode) != isBlock(claim.Spec.VolumeMode):
		return false
	case of != nil:
		return true
	}
	if claim.Spec.Selector != nil {
		if selector, err := metav1.LabelSelectorAsSelector(claim.Spec.Selector); err != nil || !selector.Matches(labels.Set(pv.Labels)) {
			return false
		}
	}
	return !slices.ContainsFunc(claim.Spec.AccessModes, func(mode corev1.PersistentVolumeAccessMode) bool {
		return !slices.Contains(pv.Spec.AccessModes, mode)
	})
}

func isBlock(mode *corev1.PersistentVolumeMode) bool {
	return mode != nil && *mode == corev1.PersistentVolumeBlock
}

// isMigrated reports whether the scheduler treats a volume of an in-tree driver as one of the CSI
// driver that has replaced it.
func isMigrated(pv *corev1.PersistentVolume) bool {
	s := &pv.Spec.PersistentVolumeSource
	return s.AWSElasticBlockStore != nil || s.GCEPersistentDisk != nil || s.AzureDisk != nil || s.Cinder != nil || s.PortworxVolume != nil
}

// tracksCapacity reports whether the scheduler compares the size of new volumes of a driver with
// the free storage capacity.
func tracksCapacity(driver *storagev1.CSIDriver) bool {
	return driver != nil && driver.Spec.StorageCapacity != nil && *driver.Spec.StorageCapacity
}

// hasDriver reports whether a CSI driver runs on a node.
func hasDriver(n *storagev1.CSINode, name string) bool {
	return n != nil && slices.ContainsFunc(n.Spec.Drivers, func(d storagev1.CSINodeDriver) bool { return d.Name == name })
}
