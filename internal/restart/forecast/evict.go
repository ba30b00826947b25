// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package forecast

import (
	"fmt"
	"time"

	"tidekeeper.dev/tidekeeper/internal/restart/decision"
	"tidekeeper.dev/tidekeeper/internal/restart/evict"
)

// pods returns the pods of a workload, for a restart by eviction: before it all of them are old
// and ready, and when it has taken as long as such restarts take all of them are new. Budgets for
// disruptions are not played: how long they make a restart take is in its history.
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
