// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package forecast

import (
	"fmt"
	"time"

	"tidekeeper.dev/tidekeeper/internal/restart/decision"
	"tidekeeper.dev/tidekeeper/internal/restart/evict"
)

// pods returns the simulated pods of a workload for a restart by eviction. Before the restart, all
// pods are old and ready. During the restart all pods are new, and become ready after its usual
// duration. PodDisruptionBudgets are not simulated, since their delays are part of the usual
// duration.
func (s *simulation) pods(o *object, t *target) *decision.Pods {
	found := &decision.Pods{Active: make([]evict.Pod, t.State.Pods)}
	for i := range found.Active {
		pod := evict.Pod{Name: fmt.Sprint(i), Created: time.Unix(0, 0), Ready: true}
		if o.restart.Status.Active != nil {
			pod.Created, pod.Ready = s.now, !t.State.Rollout.Updating
		}
		found.Active[i] = pod
	}
	return found
}
