// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package podcache

import (
	"unique"

	corev1 "k8s.io/api/core/v1"
)

// kind identifies pods with the same namespace and the same shared part of their records, such as
// constraints, requests and owner. Pods that are being deleted are of a different kind than the
// other pods.
type kind struct {
	*common
	namespace unique.Handle[string]
	deleted   bool
}

// EachKind calls `do` for each node and each kind of pod on the node, with an example Pod of the
// kind and the number of pods of the kind on the node. Pods of a kind differ only in name, UID,
// resourceVersion, node, times and last condition. A single Pod is built for each kind, because a
// list of all Pods of a large cluster takes hundreds of megabytes. The example may therefore be
// bound to another node than the node that `do` is called for.
func (w *Workloads) EachKind(do func(node string, example *corev1.Pod, count int)) error {
	if !w.Watched() {
		return errNotSynced
	}
	for _, i := range w.all() {
		if !i.HasSynced() {
			return errNotSynced
		}
		type onNode struct {
			node unique.Handle[string]
			kind kind
		}
		counts, examples := map[onNode]int{}, map[kind]*corev1.Pod{}
		for _, object := range i.SharedIndexInformer.GetIndexer().List() {
			r := object.(*record)
			k := kind{r.common, r.namespace, r.deleted != nil}
			if examples[k] == nil {
				examples[k] = r.pod()
			}
			counts[onNode{r.node, k}]++
		}
		for on, count := range counts {
			do(on.node.Value(), examples[on.kind], count)
		}
	}
	return nil
}
