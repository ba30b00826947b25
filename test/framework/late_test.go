// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"testing"
	"time"
)

// TestLate checks that a test is skipped from the given time on, but not in the midst.
func TestLate(t *testing.T) {
	now := time.Now().Unix()
	for until, want := range map[string]bool{"": false, "soon": false, "1": true, "99999999999": false} {
		t.Setenv("TIDEKEEPER_TESTS_UNTIL", until)
		if got := late(time.Unix(now, 0)); got != want {
			t.Errorf("until %q: late is %t, want %t", until, got, want)
		}
	}
	t.Setenv("TIDEKEEPER_TESTS_UNTIL", "1")
	begin := &beginning{name: "late"}
	if BeginInTime(begin); !begin.skipped {
		t.Error("a test begins late")
	}
	begin = &beginning{name: "in the midst"}
	t.Setenv("TIDEKEEPER_TESTS_UNTIL", "")
	BeginInTime(begin)
	t.Setenv("TIDEKEEPER_TESTS_UNTIL", "1")
	if BeginInTime(begin); begin.skipped {
		t.Error("a test is skipped in the midst")
	}
}

// beginning is a test that notes that it is skipped, and goes on.
type beginning struct {
	testing.TB
	name    string
	skipped bool
}

func (b *beginning) Helper()      {}
func (b *beginning) Name() string { return b.name }
func (b *beginning) Skip(...any)  { b.skipped = true }
