// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package outage

import (
	"context"
	"strings"
	"testing"
	"time"

	"tidekeeper.dev/tidekeeper/test/framework"
)

// supervisor runs managers like a kubelet: shortly after a manager has exited, it starts another.
type supervisor struct {
	stop, stopped chan struct{}
	all           []*framework.Manager
}

func supervise(t *testing.T, c *framework.Cluster, args ...string) *supervisor {
	k := &supervisor{stop: make(chan struct{}), stopped: make(chan struct{})}
	go func() {
		defer close(k.stopped)
		for {
			manager := c.LaunchManager(t, args...)
			k.all = append(k.all, manager)
			for manager.Running() {
				select {
				case <-k.stop:
					// A leader may lose its short lease at the same time.
					if err := manager.Process.Stop(context.WithoutCancel(t.Context())); err != nil && !strings.Contains(manager.Log(), "leader election lost") {
						t.Errorf("stop a manager: %v", err)
					}
					return
				case <-time.After(100 * time.Millisecond):
				}
			}
			select {
			case <-k.stop:
				return
			case <-time.After(time.Second):
			}
		}
	}()
	return k
}

// end stops the last manager, and checks that no manager has panicked.
func (k *supervisor) end(t *testing.T) {
	t.Helper()
	close(k.stop)
	<-k.stopped
	for _, manager := range k.all {
		if strings.Contains(manager.Log(), "panic") {
			t.Errorf("a manager has panicked:\n%s", manager.Log())
		}
	}
	t.Logf("%d managers were started", len(k.all))
}
