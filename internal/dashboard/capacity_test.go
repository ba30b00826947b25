// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"testing"

	"tidekeeper.dev/tidekeeper/internal/capacity"
	"tidekeeper.dev/tidekeeper/internal/view"
)

// TestAPoolThatExcludesAPod checks that a pool without copies is shown without a warning if it
// excludes the pod.
func TestAPoolThatExcludesAPod(t *testing.T) {
	for name, tc := range map[string]struct {
		fit  capacity.Fit
		want view.Severity
	}{
		"without nodes":      {capacity.Fit{}, view.Neutral},
		"by a taint":         {capacity.Fit{Refused: []capacity.Count{{What: "taint gpu:NoSchedule", Nodes: 3}}}, view.Neutral},
		"too small":          {capacity.Fit{Refused: []capacity.Count{{What: "larger than the node: cpu", Nodes: 3, TooSmall: true}}}, view.Warning},
		"a taint, too small": {capacity.Fit{Refused: []capacity.Count{{What: "taint gpu:NoSchedule and larger than the node: cpu", Nodes: 3, TooSmall: true}}}, view.Warning},
		"full":               {capacity.Fit{OnEmptyNode: 2, Refused: []capacity.Count{{What: "not enough cpu", Nodes: 3}}}, view.Warning},
	} {
		if got := severityOfNone(&view.PoolFit{Fit: tc.fit}); got != tc.want {
			t.Errorf("%s: no copy fits is %q, want %q", name, got, tc.want)
		}
	}
}
