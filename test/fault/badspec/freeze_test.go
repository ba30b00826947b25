// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package badspec

import (
	"errors"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/test/fault/badspec/mutate"
	"tidekeeper.dev/tidekeeper/test/framework"
)

// No freeze of these is about a namespace that exists.
var freezes = []map[string]any{
	{
		"from": "2020-01-01T00:00:00Z", "until": "2098-01-01T00:00:00Z", "reason": "the books are closed",
		"namespaceSelector": map[string]any{"matchLabels": map[string]any{"example.com/team": mutate.Placeholder}},
	},
	{
		"from": "2097-01-01T00:00:00Z", "until": "2099-01-01T00:00:00Z", "reason": "x",
		"namespaceSelector": map[string]any{"matchExpressions": []any{map[string]any{"key": "example.com/team", "operator": "In", "values": []any{mutate.Placeholder}}}},
	},
}

func TestFreeze(t *testing.T) {
	standing := &tidekeeperv1.Freeze{ObjectMeta: metav1.ObjectMeta{Name: "standing"}}
	create(t, standing, freezes[0])
	kind{crd: "tidekeeper.dev_freezes.yaml", examples: freezes, standing: standing, play: playFreeze}.run(t)
}

// playFreeze edits a Freeze, before a manager has seen it or afterwards, and heals it.
func playFreeze(t testing.TB, e edit) {
	f := &tidekeeperv1.Freeze{ObjectMeta: metav1.ObjectMeta{Name: e.name}}
	create(t, f, freezes[0])
	inForce := func() {
		t.Helper()
		eventually(t, f, "is in force", func() error { return framework.ReadyIs(f.Status.Conditions, f.Generation, "InForce") })
	}
	if !e.underWay {
		inForce()
	}
	change(t, f, e.Patch(e.name))
	eventually(t, f, "is looked at", func() error {
		if f.Status.ObservedGeneration != f.Generation {
			return errors.New("it is not")
		}
		return nil
	})
	change(t, f, mutate.PatchTo(freezes[0], e.name))
	inForce()
}
