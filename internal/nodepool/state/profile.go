// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package state

import (
	"crypto/sha256"
	"encoding/binary"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tidekeeper.dev/tidekeeper/internal/nodepool/resources"
	"tidekeeper.dev/tidekeeper/internal/pods"
)

// profile is what the model needs to know about a pod: what it requests, including resources
// that no node offers yet, and what decides where it may be, and what becomes of it if its node
// is lost.
type profile struct {
	requests []resources.Amount
	placement
	key   profileKey
	users int
}

// placement is what decides where a pod may be, and whether there will be another one if it is
// lost.
type placement struct {
	tolerations []corev1.Toleration
	selector    map[string]string
	affinity    *corev1.Affinity
	fate        fate
}

// fate is what becomes of a pod if its node is lost.
type fate byte

const (
	// ends means that there will be no other one: nothing controls the pod, or it is being
	// deleted.
	ends fate = iota
	// isReplaced means that its controller creates another one, which needs a place.
	isReplaced
	// staysWithNode means that it is a DaemonSet's.
	staysWithNode
)

func placementOf(pod *corev1.Pod) placement {
	return placement{
		tolerations: slices.Clip(pod.Spec.Tolerations), selector: pod.Spec.NodeSelector, affinity: pod.Spec.Affinity, fate: fateOf(pod),
	}
}

func fateOf(pod *corev1.Pod) fate {
	switch owner := metav1.GetControllerOfNoCopy(pod); {
	case owner != nil && owner.Kind == "DaemonSet":
		return staysWithNode
	case pods.IsReplaced(pod) && pod.DeletionTimestamp.IsZero():
		return isReplaced
	default:
		return ends
	}
}

// example returns a pod that the scheduler treats like those of the profile.
func (p *profile) example() *corev1.Pod {
	pod := &corev1.Pod{Spec: corev1.PodSpec{Tolerations: p.tolerations, NodeSelector: p.selector, Affinity: p.affinity}}
	switch p.fate {
	case isReplaced:
		pod.OwnerReferences = []metav1.OwnerReference{{Kind: "ReplicaSet", Controller: new(true)}}
	case staysWithNode:
		pod.OwnerReferences = []metav1.OwnerReference{{Kind: "DaemonSet", Controller: new(true)}}
	case ends:
	}
	return pod
}

type profileKey [sha256.Size]byte

// request returns how much of a resource the profile requests, if any.
func (p *profile) request(name corev1.ResourceName) (resources.Amount, bool) {
	i, ok := slices.BinarySearchFunc(p.requests, resources.Amount{Resource: name}, resources.CompareAmounts)
	if !ok {
		return resources.Amount{}, false
	}
	return p.requests[i], true
}

// profiles keeps one copy of equal profiles, as most pods of a cluster are like many others.
type profiles map[profileKey]*profile

// acquire returns the profile of a pod, and counts the pod as a user of it.
func (s profiles) acquire(pod *corev1.Pod) *profile {
	return s.intern(resources.Requests(pod), placementOf(pod))
}

func (s profiles) intern(amounts []resources.Amount, where placement) *profile {
	text := make([]byte, 0, 256)
	word := func(w string) {
		text = binary.AppendUvarint(text, uint64(len(w)))
		text = append(text, w...)
	}
	text = binary.AppendUvarint(text, uint64(len(amounts)))
	for _, a := range amounts {
		word(string(a.Resource))
		text = binary.AppendVarint(text, a.Value)
	}
	text = binary.AppendUvarint(text, uint64(len(where.tolerations)))
	for _, t := range where.tolerations {
		word(t.Key)
		word(string(t.Operator))
		word(t.Value)
		word(string(t.Effect))
		if t.TolerationSeconds == nil {
			text = append(text, 0)
		} else {
			text = binary.AppendVarint(append(text, 1), *t.TolerationSeconds)
		}
	}
	text = binary.AppendUvarint(text, uint64(len(where.selector)))
	for _, key := range slices.Sorted(maps.Keys(where.selector)) {
		word(key)
		word(where.selector[key])
	}
	text = append(text, byte(where.fate))
	if where.affinity != nil {
		text = append(text, where.affinity.String()...)
	}
	key := profileKey(sha256.Sum256(text))
	known, ok := s[key]
	if !ok {
		known = &profile{requests: amounts, placement: where, key: key}
		s[key] = known
	}
	known.users++
	return known
}

func (s profiles) release(used *profile) {
	used.users--
	if used.users == 0 {
		delete(s, used.key)
	}
}
