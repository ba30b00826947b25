// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/sets"
)

// annotationsLimit is the maximum total size of an object's annotations, in bytes.
const annotationsLimit = apivalidation.TotalAnnotationSizeLimitB

// AnnotationsFullReason is the reason reported for a node that has no space left for a pool's
// annotations.
var AnnotationsFullReason = fmt.Sprintf("the annotations of the node and of the pool together exceed the limit of %d bytes; shorten or remove some", annotationsLimit)

// planWithinLimit returns a plan that keeps the node's annotations within the size limit. tooLarge
// is a plan that exceeds the limit. planWithinLimit first leaves out all pools whose settings
// tooLarge would write. It then adds these pools back in turn, oldest first, except for each pool
// with which the annotations would exceed the limit.
func planWithinLimit(node *corev1.Node, pools []PoolOnNode, frozen sets.Set[string], tooLarge *NodePlan) NodePlan {
	leftOut := sets.New[string]()
	for key := range tooLarge.Set {
		for pool, settings := range tooLarge.Ownership {
			if _, has := settings[key]; has {
				leftOut.Insert(pool)
			}
		}
	}
	best := planWith(node, pools, frozen, leftOut)
	for _, on := range pools {
		if !leftOut.Has(on.Pool.Name) {
			continue
		}
		leftOut.Delete(on.Pool.Name)
		if with := planWith(node, pools, frozen, leftOut); with.fits(node) {
			best = with
		} else {
			leftOut.Insert(on.Pool.Name)
		}
	}
	best.AnnotationsFull = sets.List(leftOut)
	return best
}

// fits reports whether the API server would accept the annotations of the node as changed by the
// plan. A plan that does not enlarge the annotations always fits.
func (p *NodePlan) fits(node *corev1.Node) bool {
	if p.Empty() {
		return true
	}
	after := annotationsSize(p.ApplyTo(node, time.Time{}))
	return after <= annotationsLimit || after <= annotationsSize(node)
}

func annotationsSize(node *corev1.Node) (size int) {
	for key, value := range node.Annotations {
		size += len(key) + len(value)
	}
	return size
}
