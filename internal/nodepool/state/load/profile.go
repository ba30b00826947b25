// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package load

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tidekeeper.dev/tidekeeper/internal/kube/pods"
	"tidekeeper.dev/tidekeeper/internal/resources"
)

// Profile is shared by all pods that are equal for the model: they have the same requests,
// including resources that no node offers yet, may run on the same nodes, and share the same
// fate if their node is lost. A profile never changes.
type Profile struct {
	// Requests are sorted by resource.
	Requests []resources.Amount
	// Tolerations decide which taints evict the pods.
	Tolerations []corev1.Toleration

	selector map[string]string
	affinity *corev1.Affinity
	fate     fate
	key      profileKey
	users    int
}

// fate describes what becomes of a pod whose node is lost.
type fate byte

const (
	// ends: the pod is not replaced, because it has no controller or is being deleted.
	ends fate = iota
	// isReplaced: its controller creates another pod, which needs a node.
	isReplaced
	// staysWithNode: a DaemonSet's pod, which needs no other node.
	staysWithNode
)

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

// Example returns a pod that the scheduler treats like the pods of the profile.
func (p *Profile) Example() *corev1.Pod {
	pod := &corev1.Pod{Spec: corev1.PodSpec{Tolerations: p.Tolerations, NodeSelector: p.selector, Affinity: p.affinity}}
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

// Compare orders profiles by content, the same way in each process.
func Compare(a, b *Profile) int { return bytes.Compare(a.key[:], b.key[:]) }

// request returns the amount of a resource that a pod of the profile requests; false if none.
func (p *Profile) request(name corev1.ResourceName) (resources.Amount, bool) {
	i, ok := slices.BinarySearchFunc(p.Requests, resources.Amount{Resource: name}, resources.CompareAmounts)
	if !ok {
		return resources.Amount{}, false
	}
	return p.Requests[i], true
}

// profiles interns the profiles in use, since most pods of a cluster are like many others.
type profiles map[profileKey]*Profile

// acquire returns the profile of a pod, and counts the pod as a user of it.
func (s profiles) acquire(pod *corev1.Pod) *Profile {
	return s.intern(Profile{
		Requests: resources.Requests(pod), Tolerations: slices.Clip(pod.Spec.Tolerations),
		selector: pod.Spec.NodeSelector, affinity: pod.Spec.Affinity, fate: fateOf(pod),
	})
}

// intern returns the profile in use that equals p, or else p itself, and counts a user.
func (s profiles) intern(p Profile) *Profile {
	p.key = p.digest()
	known, ok := s[p.key]
	if !ok {
		known = &p
		s[p.key] = known
	}
	known.users++
	return known
}

// release removes a user of a profile.
func (s profiles) release(used *Profile) {
	used.users--
	if used.users == 0 {
		delete(s, used.key)
	}
}

// digest returns the same key for two profiles if, and only if, their contents are equal.
func (p *Profile) digest() profileKey {
	text := make([]byte, 0, 256)
	word := func(w string) {
		text = binary.AppendUvarint(text, uint64(len(w)))
		text = append(text, w...)
	}
	text = binary.AppendUvarint(text, uint64(len(p.Requests)))
	for _, a := range p.Requests {
		word(string(a.Resource))
		text = binary.AppendVarint(text, a.Value)
	}
	text = binary.AppendUvarint(text, uint64(len(p.Tolerations)))
	for _, t := range p.Tolerations {
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
	text = binary.AppendUvarint(text, uint64(len(p.selector)))
	for _, key := range slices.Sorted(maps.Keys(p.selector)) {
		word(key)
		word(p.selector[key])
	}
	text = append(text, byte(p.fate))
	if p.affinity != nil {
		text = append(text, p.affinity.String()...)
	}
	return sha256.Sum256(text)
}
