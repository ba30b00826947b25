// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package index

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
)

// RestartTarget finds ScheduledRestarts by what they restart; [TargetKey] makes
// its values.
const RestartTarget = "spec.targetRef"

// TargetKey is the value of the index RestartTarget for a workload.
func TargetKey(kind, name string) string { return kind + "/" + name }

// AddRestartTarget adds the index RestartTarget.
func AddRestartTarget(ctx context.Context, indexer client.FieldIndexer) error {
	if err := indexer.IndexField(ctx, &tidekeeperv1.ScheduledRestart{}, RestartTarget, restartTarget); err != nil {
		return fmt.Errorf("index %s of scheduled restarts: %w", RestartTarget, err)
	}
	return nil
}

func restartTarget(object client.Object) []string {
	restart, ok := object.(*tidekeeperv1.ScheduledRestart)
	if !ok {
		return nil
	}
	return []string{TargetKey(restart.Spec.TargetRef.Kind, restart.Spec.TargetRef.Name)}
}
