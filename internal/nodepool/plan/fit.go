// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/sets"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
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
func (in input) planWithinLimit(tooLarge *NodePlan) NodePlan {
	leftOut := sets.New[string]()
	for key := range tooLarge.Set {
		for pool, settings := range tooLarge.Ownership {
			if _, has := settings[key]; has {
				leftOut.Insert(pool)
			}
		}
	}
	best := in.plan(leftOut)
	for _, on := range in.pools {
		if !leftOut.Has(on.Pool.Name) {
			continue
		}
		leftOut.Delete(on.Pool.Name)
		if with := in.plan(leftOut); with.fits(in.node) {
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
	if p.Empty() || annotationsSize(node)+p.growsAtMost() <= annotationsLimit {
		return true
	}
	after := annotationsSize(p.ApplyTo(node, time.Time{}))
	return after <= annotationsLimit || after <= annotationsSize(node)
}

// growsAtMost returns a number of bytes by which the plan enlarges the annotations of a node at most.
func (p *NodePlan) growsAtMost() int {
	size := len(tidekeeperv1.OwnershipAnnotation) + p.Ownership.MaxLength(p.Closed)
	for key, value := range p.Set {
		size += len(key.Name) + len(value)
	}
	return size
}

func annotationsSize(node *corev1.Node) (size int) {
	for key, value := range node.Annotations {
		size += len(key) + len(value)
	}
	return size
}
