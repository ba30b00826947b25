// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"context"
	"testing"
	"time"

	"tidekeeper.dev/tidekeeper/internal/view"
)

// An answer is kept until it is too old, and a bounded number is kept.
func TestMemo(t *testing.T) {
	asked := 0
	m := memo[int, int]{age: 10 * time.Second}
	get := func(question int, after time.Duration) int {
		return m.get(question, noon.Add(after), func() int { asked++; return asked })
	}
	for _, tc := range []struct {
		name     string
		question int
		after    time.Duration
		want     int
	}{
		{"the first time", 1, 0, 1},
		{"again", 1, 9 * time.Second, 1},
		{"another question", 2, 9 * time.Second, 2},
		{"too old", 1, 10 * time.Second, 3},
		{"the other is younger", 2, 18 * time.Second, 2},
	} {
		if got := get(tc.question, tc.after); got != tc.want {
			t.Errorf("%s: answer %d, want %d", tc.name, got, tc.want)
		}
	}
	for question := range 3 * mostAnswers {
		get(question, 0)
	}
	if len(m.kept) > mostAnswers {
		t.Errorf("%d answers are kept, want at most %d", len(m.kept), mostAnswers)
	}
}

// While the API server cannot be reached, the manager is shown as it was last known.
func TestManagerWhileLost(t *testing.T) {
	asked := 0
	l := newLookups(Cluster{Manager: func(context.Context) view.Manager { asked++; return view.Manager{Leader: "a"} }})
	for _, tc := range []struct {
		name      string
		after     time.Duration
		reachable bool
		leader    string
		asked     int
	}{
		{"never reached", 0, false, "", 0},
		{"reached", 0, true, "a", 1},
		{"lost, and the answer is old", time.Hour, false, "a", 1},
		{"reached again", time.Hour, true, "a", 2},
	} {
		if got := l.manager(t.Context(), noon.Add(tc.after), tc.reachable); got.Leader != tc.leader || asked != tc.asked {
			t.Errorf("%s: leader %q after %d requests, want %q after %d", tc.name, got.Leader, asked, tc.leader, tc.asked)
		}
	}
}
