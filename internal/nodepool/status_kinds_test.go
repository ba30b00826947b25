// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package nodepool

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/nodepool/setting"
)

// TestKeysOfEachKindAreWrittenAtOnce checks that newly managed keys of any kind are written without
// waiting for the minimum interval since the last status write, because nodes wait for these keys.
func TestKeysOfEachKindAreWrittenAtOnce(t *testing.T) {
	now := time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC)
	for _, kind := range setting.Kinds() {
		before, after := &tidekeeperv1.NodePoolStatus{}, &tidekeeperv1.NodePoolStatus{
			Managed: setting.ManagedKeys(sets.New(setting.Key{Kind: kind, Name: "key"})),
		}
		if write, wait := whenToWrite(before, after, now, now, time.Minute); !write {
			t.Errorf("a new %s waits for %s", kind, wait)
		}
		if write, _ := whenToWrite(after, before, now, now, time.Minute); write {
			t.Errorf("a %s that is no longer managed does not wait", kind)
		}
	}
}
