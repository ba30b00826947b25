// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"fmt"
	"time"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/workload"
)

// targetGate keeps restarts from starting while there is no workload, or while a restart would not
// replace the pods of the workload.
type targetGate struct {
	ref    tidekeeperv1.TargetRef
	target *workload.State
	// evicts is true if restarts evict the pods of the target (spec.method is Evict).
	evicts bool
	// unserved is true if the cluster does not serve the target's kind. unreadable explains why the
	// target cannot be used although it may exist; "" if it can be used.
	unserved   bool
	unreadable string
}

func (g *targetGate) blocks(_, _ time.Time) *blocker {
	t := g.target
	switch {
	case t == nil:
		return &blocker{reason: tidekeeperv1.ReasonTargetNotFound, message: g.notFound()}
	case t.Deleting:
		return &blocker{reason: tidekeeperv1.ReasonTargetNotFound, message: fmt.Sprintf("%s is being deleted", t)}
	case g.evicts:
		// Evictions replace the pods regardless of the update strategy.
		return nil
	case t.OnDelete:
		return &blocker{reason: tidekeeperv1.ReasonStrategyOnDelete, permanent: true, message: fmt.Sprintf("%s has the update strategy OnDelete, by which no pod would be replaced", t)}
	case t.Partitioned:
		return &blocker{reason: tidekeeperv1.ReasonStrategyPartition, permanent: true, message: fmt.Sprintf("%s has no pod above its partition, so that no pod would be replaced", t)}
	default:
		return nil
	}
}

func (g *targetGate) describe(at, due time.Time) Gate {
	return describeAs(GateTarget, g.blocks(at, due), fmt.Sprintf("%s %s exists", g.ref.Kind, g.ref.Name))
}

// notFound returns the message for a target that does not exist.
func (g *targetGate) notFound() string {
	switch {
	case g.unreadable != "":
		return g.unreadable
	case g.unserved:
		return fmt.Sprintf("there is no %s %s: the cluster does not serve the kind %s of %s; is its CRD installed?", g.ref.Kind, g.ref.Name, g.ref.Kind, g.ref.GetAPIVersion())
	default:
		return fmt.Sprintf("there is no %s %s in this namespace", g.ref.Kind, g.ref.Name)
	}
}
