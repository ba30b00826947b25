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

// profile is what the model needs to know about a pod: what it requests, including resources
// that no node offers yet, and its tolerations of NoExecute taints.
type profile struct {
	requests    []resources.Amount
	tolerations []corev1.Toleration
	key         profileKey
	users       int
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

// noExecuteTolerations returns the tolerations of a pod that can match NoExecute taints, in
// their order.
func noExecuteTolerations(pod *corev1.Pod) []corev1.Toleration {
	other := func(t corev1.Toleration) bool { return t.Effect != "" && t.Effect != corev1.TaintEffectNoExecute }
	if !slices.ContainsFunc(pod.Spec.Tolerations, other) {
		return slices.Clip(pod.Spec.Tolerations)
	}
	return slices.DeleteFunc(slices.Clone(pod.Spec.Tolerations), other)
}
