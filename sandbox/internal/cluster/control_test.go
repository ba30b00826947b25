// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"strings"
	"testing"

	"tidekeeper.dev/tidekeeper/sandbox/internal/supervisor"
)

// TestStatusDown checks that Down returns the components that are not running, each with its state.
func TestStatusDown(t *testing.T) {
	component := func(name, state string) Component {
		var c Component
		c.Name = name
		c.State = supervisor.State(state)
		return c
	}
	s := Status{Components: []Component{component("etcd", "running"), component("a", "paused"), component("b", "crashed"), component("c", "killed")}}
	if got := strings.Join(s.Down(), ", "); got != "a is paused, b has crashed, c was killed" {
		t.Errorf("down: %s", got)
	}
}
