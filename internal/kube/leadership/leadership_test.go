// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package leadership

import (
	"context"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// fakeManager is a manager that records the runnables added to it.
type fakeManager struct {
	manager.Manager
	elected chan struct{}
	added   manager.Runnable
}

func (m *fakeManager) Elected() <-chan struct{} { return m.elected }

func (m *fakeManager) Add(r manager.Runnable) error {
	m.added = r
	return nil
}

func TestOnElected(t *testing.T) {
	m := &fakeManager{elected: make(chan struct{})}
	started := 0
	if err := OnElected(m, func(context.Context) { started++ }); err != nil {
		t.Fatal(err)
	}
	if m.added.(manager.LeaderElectionRunnable).NeedLeaderElection() {
		t.Error("a standby does not run it, so that it would not be there to hear of its election")
	}

	ctx, stop := context.WithCancel(t.Context())
	stop()
	if err := m.added.Start(ctx); err != nil || started != 0 {
		t.Errorf("a standby that stops has started %d times: %v", started, err)
	}
	close(m.elected)
	if err := m.added.Start(t.Context()); err != nil || started != 1 {
		t.Errorf("the leader has started %d times: %v", started, err)
	}
}
