// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package podcache

import (
	"google.golang.org/protobuf/encoding/protowire"
	corev1 "k8s.io/api/core/v1"

	"tidekeeper.dev/tidekeeper/internal/drain"
)

// factFields lists the pod fields that the cache keeps only as [drain.Facts], because they only
// matter for whether the pod blocks a drain.
var factFields = []string{
	"metadata.labels", "metadata.finalizers", "metadata.annotations[" + corev1.MirrorPodAnnotationKey + "]",
	"spec.terminationGracePeriodSeconds", "spec.volumes.volumeSource.emptyDir",
}

// The functions below read the fields in factFields from an encoded pod. They do nothing if the
// cache keeps no facts.
var (
	scanLabel = ifKept(func(s *scan, entry []byte) error {
		key, value, err := mapEntry(entry)
		s.facts.Label(key, value)
		return err
	})
	scanFinalizer = ifKept(func(s *scan, name []byte) error {
		s.facts.Finalizer(string(name))
		return nil
	})
	scanGrace = ifKept(func(s *scan, value []byte) error {
		seconds, n := protowire.ConsumeVarint(value)
		s.facts.Grace(int64(seconds))
		return protowire.ParseError(n)
	})
	scanVolume = message[corev1.Volume](map[string]setter{
		"volumeSource": message[corev1.VolumeSource](map[string]setter{
			"emptyDir": ifKept(func(s *scan, _ []byte) error {
				s.facts.EmptyDir()
				return nil
			}),
		}),
	})
)

// ifKept returns a function that calls `set` only if the cache keeps facts about pods.
func ifKept(set setter) setter {
	return func(s *scan, value []byte) error {
		if s.facts == nil {
			return nil
		}
		return set(s, value)
	}
}

// factsOf returns the facts about the pod that d.scan has just read. c is the part of the pod's
// record that other pods share. The facts are zero if the cache keeps no facts. factsOf returns
// false if the pod must be decoded completely to determine its facts.
func (d *podDecoder) factsOf(c *common) (drain.Facts, bool) {
	of := d.scan.facts
	if of == nil {
		return drain.Facts{}, true
	}
	if _, mirror := d.scan.annotations[corev1.MirrorPodAnnotationKey]; mirror {
		of.Static()
	}
	d.mu.Lock()
	known := c.facts
	d.mu.Unlock()
	facts, ok := of.Facts(known[:]...)
	return d.share(c, facts), ok
}

// share returns facts that equal the given facts. If c contains such facts, it returns these, so
// that pods with the same shared part c also share the memory of their facts.
func (e *encoder) share(c *common, facts drain.Facts) drain.Facts {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, known := range c.facts {
		if known.Equal(facts) {
			return known
		}
	}
	c.facts[0], c.facts[1] = facts, c.facts[0]
	return facts
}

// Facts returns the Hasher that computes the [drain.Facts] of the cached pods. It is nil if the
// cache keeps no facts.
func (w *Workloads) Facts() *drain.Hasher {
	for _, i := range w.all() {
		if i.decoding != nil {
			return i.decoding.Facts
		}
	}
	return nil
}

// EachNode calls `do` with the name and the cached pods of each node that has pods and for which
// `on` returns true. `do` must not retain the list. If the cache keeps no facts about pods,
// EachNode does not call `do`.
func (w *Workloads) EachNode(on func(node string) bool, do func(node string, running []drain.CachedPod)) error {
	for _, i := range w.all() {
		switch {
		case !i.HasSynced():
			return errNotSynced
		case i.decoding == nil || i.decoding.Facts == nil:
			continue
		}
		byNode := map[string][]*record{}
		for _, object := range i.SharedIndexInformer.GetIndexer().List() {
			r := object.(*record)
			if node := r.node.Value(); on(node) {
				byNode[node] = append(byNode[node], r)
			}
		}
		var running []drain.CachedPod
		for node, records := range byNode {
			running = running[:0]
			for _, r := range records {
				running = append(running, drain.CachedPod{
					PodKind: drain.PodKind{Namespace: r.namespace, Facts: r.facts, Ready: i.decoding.Ready(r.lastCondition), Shared: r.common},
					Name:    r.name, Deleted: r.deleted, Source: r,
				})
			}
			do(node, running)
		}
	}
	return nil
}

// Pod restores the Pod from its record. It implements the interface of the field Source of
// [drain.CachedPod]. Callers must not modify the Pod.
func (r *record) Pod() *corev1.Pod { return r.pod() }
