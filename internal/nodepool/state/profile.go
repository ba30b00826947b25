// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package state

import (
	"crypto/sha256"
	"encoding/binary"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"tidekeeper.dev/tidekeeper/internal/nodepool/resources"
)

// profile is what pools ask of a pod: what it requests, also of resources that no
// node offers yet, and the tolerations by which it may stay where a taint evicts.
type profile struct {
	requests    []resources.Amount
	tolerations []corev1.Toleration
	key         profileKey
	users       int
}

type profileKey [sha256.Size]byte

// request returns how much of a resource the shape requests, if it names it.
func (s *profile) request(name corev1.ResourceName) (resources.Amount, bool) {
	i, ok := slices.BinarySearchFunc(s.requests, resources.Amount{Resource: name}, resources.CompareAmounts)
	if !ok {
		return resources.Amount{}, false
	}
	return s.requests[i], true
}

// profiles keeps one copy of equal shapes: most pods of a cluster are like many
// others.
type profiles map[profileKey]*profile

// of returns the shape of a pod, which has one user more.
func (s profiles) of(pod *corev1.Pod) *profile {
	return s.intern(resources.Requests(pod), noExecuteTolerations(pod))
}

func (s profiles) intern(amounts []resources.Amount, tolerations []corev1.Toleration) *profile {
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
	for _, t := range tolerations {
		word(t.Key)
		word(string(t.Operator))
		word(t.Value)
		if t.TolerationSeconds == nil {
			text = append(text, 0)
		} else {
			text = binary.AppendVarint(append(text, 1), *t.TolerationSeconds)
		}
	}
	key := profileKey(sha256.Sum256(text))
	known, ok := s[key]
	if !ok {
		known = &profile{requests: amounts, tolerations: tolerations, key: key}
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

// noExecuteTolerations returns the tolerations of a pod that match taints that evict, in their
// order.
func noExecuteTolerations(pod *corev1.Pod) []corev1.Toleration {
	other := func(t corev1.Toleration) bool { return t.Effect != "" && t.Effect != corev1.TaintEffectNoExecute }
	if !slices.ContainsFunc(pod.Spec.Tolerations, other) {
		return slices.Clip(pod.Spec.Tolerations)
	}
	return slices.DeleteFunc(slices.Clone(pod.Spec.Tolerations), other)
}
