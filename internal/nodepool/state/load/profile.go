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

// Profile describes pods that the model need not distinguish. They have the same requests,
// including requests for resources that no node offers yet, may run on the same nodes, and are
// treated the same if their node is lost. A profile is immutable, except for its number of users.
type Profile struct {
	// Requests lists the pod's requests, sorted by resource.
	Requests []resources.Amount
	// Tolerations lists the pod's tolerations, which determine the taints that evict it.
	Tolerations []corev1.Toleration

	selector map[string]string
	affinity *corev1.Affinity
	fate     fate
	key      profileKey
	users    int
}

// fate is the effect that the loss of a node has on a pod.
type fate byte

const (
	// ends means that the pod terminates and is not replaced, because it has no controller or is
	// being deleted.
	ends fate = iota
	// isReplaced means that the pod's controller creates a replacement, which needs another node.
	isReplaced
	// staysWithNode means that the pod belongs to a DaemonSet, and terminates with its node without
	// a replacement on another node.
	staysWithNode
)

func fateOf(pod *corev1.Pod) fate {
	switch {
	case pods.IsOfDaemonSet(pod):
		return staysWithNode
	case pods.IsReplaced(pod) && pod.DeletionTimestamp.IsZero():
		return isReplaced
	default:
		return ends
	}
}

// Example returns a pod that the scheduler treats like the pods with this profile, except that it
// has no requests.
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

// Compare orders profiles by content, so that the order is the same in every process.
func Compare(a, b *Profile) int { return bytes.Compare(a.key[:], b.key[:]) }

// request returns the profile's request for a resource, and whether the resource is requested.
func (p *Profile) request(name corev1.ResourceName) (resources.Amount, bool) {
	i, ok := slices.BinarySearchFunc(p.Requests, resources.Amount{Resource: name}, resources.CompareAmounts)
	if !ok {
		return resources.Amount{}, false
	}
	return p.Requests[i], true
}

// profiles interns the profiles in use, since most pods of a cluster have the same profile as many
// other pods.
type profiles map[profileKey]*Profile

// acquire returns the profile of a pod, and increments the profile's number of users.
func (s profiles) acquire(pod *corev1.Pod) *Profile {
	return s.intern(Profile{
		Requests: resources.Requests(pod), Tolerations: slices.Clip(pod.Spec.Tolerations),
		selector: pod.Spec.NodeSelector, affinity: pod.Spec.Affinity, fate: fateOf(pod),
	})
}

// intern returns the interned profile that equals p, and increments its number of users. If there
// is none, p is interned.
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

// release decrements a profile's number of users, and drops the profile when it has no users left.
func (s profiles) release(used *Profile) {
	used.users--
	if used.users == 0 {
		delete(s, used.key)
	}
}

// digest returns a hash of the profile's content. Profiles with the same digest are equal.
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
