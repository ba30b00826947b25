// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package podcache

import (
	"crypto/sha256"
	"reflect"
	"slices"
	"strings"
	"unique"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"tidekeeper.dev/tidekeeper/internal/cache/wire"
	"tidekeeper.dev/tidekeeper/internal/drain"
)

// KeptPodFields declares the fields of pods that the transform of the pod cache reads. No other
// field is decoded.
type KeptPodFields struct {
	// Fields lists the paths of all fields that the transform reads, such as spec.containers.name.
	// A path to a map may end with a key in brackets, such as metadata.labels[app].
	Fields []string
	// Summary returns the condition that the transform appends to the kept conditions, or nil to
	// append none. Of a pod, Summary may read only the creation and deletion times, annotations,
	// node, phase, start time and container names. Of a condition, it may read only the type,
	// status and time. Of a container status, it may read only the name, restart count and states.
	// The rest of the transform must not read annotations, times, conditions, restart counts or
	// states.
	Summary func(*corev1.Pod) *corev1.PodCondition
	// Conditions lists the types of pod conditions of which the transform also reads fields other
	// than type, status and time.
	Conditions []corev1.PodConditionType
	// Facts, if not nil, computes the [drain.Facts] of each pod, which determine whether the pod
	// blocks a drain. The cache then keeps these facts, and Ready must be set. Ready reports
	// whether a pod is Ready. Its argument is the last kept condition of the pod, or nil for a pod
	// without conditions.
	Facts *drain.Hasher
	Ready func(*corev1.PodCondition) bool
}

// recordMaker builds records, the compact form in which the cache stores pods, from the protobuf
// encoding of pods.
type recordMaker struct {
	*encoder
	KeptPodFields
	// kept is the mask of the fields in KeptPodFields and, if facts are kept, in factFields. key is
	// the mask of the fields that belong to the shared part of a record, in which the pods of a
	// workload do not differ.
	kept, key *wire.Mask
	// toRecord applies the transform to a decoded pod and returns its record.
	toRecord func(runtime.Object) (runtime.Object, error)
}

func newRecordMaker(e *encoder, content KeptPodFields) (*recordMaker, error) {
	pod := reflect.TypeFor[corev1.Pod]()
	all := content.Fields
	if content.Facts != nil {
		all = slices.Concat(all, factFields)
	}
	kept, err := wire.NewMask(pod, all)
	if err != nil {
		return nil, err
	}
	key, err := wire.NewMask(pod, slices.DeleteFunc(slices.Clone(content.Fields), func(field string) bool {
		return slices.ContainsFunc(ownFields, func(own string) bool {
			rest, ok := strings.CutPrefix(field, own)
			return ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
		})
	}))
	return &recordMaker{encoder: e, KeptPodFields: content, kept: kept, key: key}, err
}

// podDecoder builds records for a stream of pods. It reuses its buffers.
type podDecoder struct {
	*recordMaker
	scan           scan
	digested, text []byte
}

func newPodDecoder(m *recordMaker) *podDecoder {
	d := &podDecoder{recordMaker: m}
	if m.Facts != nil {
		d.scan.facts = m.Facts.Builder()
	}
	return d
}

// record returns the record of an encoded pod, and overwrites the given bytes. It returns
// wire.ErrNotUnderstood for bytes that are not an encoded pod.
//
// Nearly every pod differs in only a few fields from a pod that was decoded before. Therefore only
// these few fields are read. The other fields are recognized by a hash of their bytes, so that they
// need not be decoded again.
func (d *podDecoder) record(pod []byte) (*record, error) {
	pod, err := d.kept.Prune(pod)
	if err != nil {
		return nil, wire.NotUnderstood(err)
	}
	if d.scan.of(pod) != nil || d.isUnusual() {
		return d.decode(pod)
	}
	d.digested, err = d.key.Prune(append(d.digested[:0], pod...))
	if err != nil {
		return nil, wire.NotUnderstood(err)
	}
	digest := sha256.Sum256(d.digested)
	known := d.byBytes.get(digest)
	if known == nil {
		r, err := d.decode(pod)
		if err == nil {
			r.common = d.byBytes.intern(digest, func() *common { return &common{parts: r.parts} })
			r.facts = d.share(r.common, r.facts)
		}
		return r, err
	}
	facts, ok := d.factsOf(known)
	if !ok {
		return d.decode(pod)
	}
	s := &d.scan
	r := &record{
		namespace: unique.Make(s.namespace), node: unique.Make(s.pod.Spec.NodeName),
		created: secondsOf(s.created), deleted: s.deleted, facts: facts, common: known,
	}
	d.text = append(append(append(d.text[:0], s.name...), s.uid...), s.version...)
	own := string(d.text)
	name, uid := len(s.name), len(s.name)+len(s.uid)
	r.name, r.uid, r.resourceVersion = own[:name], types.UID(own[name:uid]), own[uid:]
	if summary := d.Summary(&s.pod); summary != nil {
		d.setLast(r, *summary)
	}
	return r, nil
}

// isUnusual reports whether the pod that the scan has read must be decoded completely because of
// its conditions. This is the case if the transform reads additional fields of one of them, or if
// several of them have the same type.
func (d *podDecoder) isUnusual() bool {
	conditions := d.scan.pod.Status.Conditions
	for i := range conditions {
		if slices.Contains(d.Conditions, conditions[i].Type) {
			return true
		}
		for j := range i {
			if conditions[j].Type == conditions[i].Type {
				return true
			}
		}
	}
	return false
}

// decode decodes all kept fields of a pod and returns its record. Unlike the scan, it works for
// every pod.
func (d *podDecoder) decode(raw []byte) (*record, error) {
	pod := &corev1.Pod{}
	if err := pod.Unmarshal(raw); err != nil {
		return nil, wire.NotUnderstood(err)
	}
	r, err := d.toRecord(pod)
	if err != nil {
		return nil, err
	}
	return r.(*record), nil
}

// object implements [decoder].
func (d *podDecoder) object(raw []byte) (runtime.Object, error) { return d.record(raw) }

// bookmark implements [decoder].
func (d *podDecoder) bookmark(raw []byte) (runtime.Object, error) {
	pod := &corev1.Pod{}
	if err := pod.Unmarshal(raw); err != nil {
		return nil, wire.NotUnderstood(err)
	}
	return bookmarkOf(pod), nil
}

// bookmarkOf returns a record with the resourceVersion and the annotations of a bookmark event. The
// informer never stores this record.
func bookmarkOf(pod *corev1.Pod) *record {
	return &record{
		resourceVersion: pod.ResourceVersion,
		common:          &common{parts: parts{shared: &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: pod.Annotations}}}},
	}
}

// nodeDecoder decodes the kept fields of Nodes from protobuf.
type nodeDecoder struct{ kept *wire.Mask }

func newNodeDecoder(fields []string) (nodeDecoder, error) {
	kept, err := wire.NewMask(reflect.TypeFor[corev1.Node](), fields)
	return nodeDecoder{kept}, err
}

// object implements [decoder].
func (d nodeDecoder) object(raw []byte) (runtime.Object, error) {
	raw, err := d.kept.Prune(raw)
	if err != nil {
		return nil, wire.NotUnderstood(err)
	}
	return d.bookmark(raw)
}

// bookmark implements [decoder].
func (d nodeDecoder) bookmark(raw []byte) (runtime.Object, error) {
	node := &corev1.Node{}
	if err := node.Unmarshal(raw); err != nil {
		return nil, wire.NotUnderstood(err)
	}
	return node, nil
}
