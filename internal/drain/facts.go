// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"cmp"
	"encoding/binary"
	"hash/maphash"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
)

// Facts holds the fields of a pod that determine whether the pod blocks a drain, apart from its
// owner, phase, readiness and deletion time. It is meant for caches of many pods, and is a pointer
// to a string that pods with equal fields can share. The string has a byte for the flags, and 12
// bytes for each of at most [MostLabels] labels.
//
// Labels are kept as hashes. That suffices to evaluate a label selector, which compares keys and
// values for equality only. The zero Facts means that nothing is known about the pod.
type Facts struct{ text *string }

// flags is a bit set of the fields in [Facts] that are not labels.
type flags byte

const (
	// static means that the pod is the mirror of a static pod.
	static flags = 1 << iota
	// localData means that the pod has an emptyDir volume.
	localData
	// longGrace means that the pod's termination grace period is longer than MostGrace.
	longGrace
	// finalizer means that the pod has a finalizer other than the finalizer with which the Job
	// controller tracks pods, for which jobFinalizer is set instead.
	finalizer
	jobFinalizer
	// labelsUnknown means that the pod has more than MostLabels labels, none of which is kept.
	labelsUnknown
)

// MostLabels is the maximum number of labels in the [Facts] about a pod. If a pod has more labels,
// none of them is kept. The number is limited because users may add any number of labels.
const MostLabels = 64

// podLabels lists the keys of labels that differ between the pods of a workload. [Facts] does not
// include these labels, because otherwise the pods of a StatefulSet could not share their Facts. If
// a PodDisruptionBudget has a requirement on such a label, it is unknown which pods it selects.
var podLabels = []string{"statefulset.kubernetes.io/pod-name", "apps.kubernetes.io/pod-index", batchv1.JobCompletionIndexAnnotation}

// label is the hashed form of a label. key is the hash of the label's key, and pair is the hash of
// its key and value.
type label struct {
	key  uint32
	pair uint64
}

// labelSize is the size of an encoded label in bytes.
const labelSize = 4 + 8

// Hasher hashes labels. Hashes of different Hashers cannot be compared.
type Hasher struct{ seed maphash.Seed }

// NewHasher returns a Hasher. The seed should be random, so that no user can construct labels with
// equal hashes.
func NewHasher(seed maphash.Seed) *Hasher { return &Hasher{seed} }

// hash returns the hashed form of a label with the given key and value.
func (h *Hasher) hash(key, value []byte) label {
	var of maphash.Hash
	of.SetSeed(h.seed)
	_, _ = of.Write(key)
	hashed := label{key: uint32(of.Sum64())}
	_ = of.WriteByte(0) // Label keys cannot contain a zero byte.
	_, _ = of.Write(value)
	hashed.pair = of.Sum64()
	return hashed
}

// Builder collects the fields of a pod for its [Facts]. It can be reused, which saves allocations.
type Builder struct {
	hasher *Hasher
	flags  flags
	labels []label
	text   []byte
}

// Builder returns a Builder that hashes labels with h.
func (h *Hasher) Builder() *Builder { return &Builder{hasher: h} }

// Reset drops the collected fields, so that the Builder can be used for another pod.
func (b *Builder) Reset() { b.flags, b.labels = 0, b.labels[:0] }

// Label adds the hash of a label of the pod. Labels in podLabels are ignored.
func (b *Builder) Label(key, value []byte) {
	if len(b.labels) > MostLabels {
		return
	}
	for _, of := range podLabels {
		if string(key) == of {
			return
		}
	}
	b.labels = append(b.labels, b.hasher.hash(key, value))
}

// Finalizer records that the pod has a finalizer with the given name.
func (b *Builder) Finalizer(name string) {
	if name == batchv1.JobTrackingFinalizer {
		b.flags |= jobFinalizer
	} else {
		b.flags |= finalizer
	}
}

// Grace records the pod's termination grace period in seconds.
func (b *Builder) Grace(seconds int64) {
	b.flags &^= longGrace
	if isLongGrace(seconds) {
		b.flags |= longGrace
	}
}

// EmptyDir records that the pod has an emptyDir volume.
func (b *Builder) EmptyDir() { b.flags |= localData }

// Static records that the pod is the mirror of a static pod.
func (b *Builder) Static() { b.flags |= static }

// Facts returns the Facts of the pod whose fields were collected. To save memory, it returns an
// element of `known` with the same fields, if there is any. It returns false if a label key was
// added twice, because the value of the label is then unknown.
func (b *Builder) Facts(known ...Facts) (Facts, bool) {
	is, labels := b.flags, b.labels
	if len(labels) > MostLabels {
		is, labels = is|labelsUnknown, nil
	}
	slices.SortFunc(labels, func(a, b label) int { return cmp.Or(cmp.Compare(a.key, b.key), cmp.Compare(a.pair, b.pair)) })
	b.text = append(b.text[:0], byte(is))
	for i, l := range labels {
		if i > 0 && labels[i-1].key == l.key {
			return Facts{}, false
		}
		b.text = binary.LittleEndian.AppendUint32(b.text, l.key)
		b.text = binary.LittleEndian.AppendUint64(b.text, l.pair)
	}
	for _, f := range known {
		if f.known() && *f.text == string(b.text) {
			return f, true
		}
	}
	return Facts{new(string(b.text))}, true
}

// Facts returns the [Facts] of a pod, with labels hashed by h.
func (h *Hasher) Facts(pod *corev1.Pod) Facts {
	b := h.Builder()
	for key, value := range pod.Labels {
		b.Label([]byte(key), []byte(value))
	}
	for _, name := range pod.Finalizers {
		b.Finalizer(name)
	}
	if grace := pod.Spec.TerminationGracePeriodSeconds; grace != nil {
		b.Grace(*grace)
	}
	if len(emptyDirs(pod)) > 0 {
		b.EmptyDir()
	}
	if isMirror(pod) {
		b.Static()
	}
	facts, _ := b.Facts()
	return facts
}

// isLongGrace reports whether a termination grace period in seconds is longer than [MostGrace].
func isLongGrace(seconds int64) bool { return seconds > int64(MostGrace/time.Second) }

// known reports whether f holds facts about a pod, unlike the zero value.
func (f Facts) known() bool { return f.text != nil }

// Equal reports whether the facts are about pods with the same fields, hashed by the same Hasher.
func (f Facts) Equal(other Facts) bool {
	return f == other || f.known() && other.known() && *f.text == *other.text
}

// flags returns the bit set of the pod's fields that are not labels. It returns labelsUnknown for
// the zero Facts.
func (f Facts) flags() flags {
	if !f.known() {
		return labelsUnknown
	}
	return flags((*f.text)[0])
}

// labels returns the hashes of the pod's labels, sorted by the hash of the key. It returns an empty
// list if the labels are unknown.
func (f Facts) labels() []label {
	if !f.known() {
		return nil
	}
	rest := []byte((*f.text)[1:])
	all := make([]label, 0, len(rest)/labelSize)
	for ; len(rest) > 0; rest = rest[labelSize:] {
		all = append(all, label{binary.LittleEndian.Uint32(rest), binary.LittleEndian.Uint64(rest[4:])})
	}
	return all
}
