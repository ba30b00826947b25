// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package podcache

import (
	"unique"

	corev1 "k8s.io/api/core/v1"
)

// kind identifies pods with the same namespace and the same shared part of their records, such as
// constraints, requests and owner. Pods that are being deleted are of a separate kind.
type kind struct {
	*common
	namespace unique.Handle[string]
	deleted   bool
}

// EachKind calls `do` for each node and each kind of the pods on that node, with an example Pod of
// the kind and the number of such pods. Pods of a kind differ only in name, node, times and their
// last condition. A single Pod is built for each kind, because a list of all Pods of a large
// cluster takes hundreds of megabytes. The same Pod is therefore passed for every node that has
// pods of the kind.
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
