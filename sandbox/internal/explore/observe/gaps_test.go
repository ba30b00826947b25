// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"slices"
	"testing"
	"time"
)

// TestGaps checks that the versions after which a watch failed are marked: from those that may have
// been under way at that time up to the list that follows.
func TestGaps(t *testing.T) {
	now := time.Now()
	r := &Recorder{}
	for revision, ago := range map[int64]time.Duration{10: time.Minute, 20: 2 * inFlight, 30: inFlight / 2, 40: 0, 50: 0, 60: 0} {
		r.Versions = append(r.Versions, Version{Revision: revision, Time: now.Add(-ago)})
	}
	r.gaps.add(revisionBefore(r.Versions, now.Add(-inFlight)), "50")
	versions, err := r.All()
	if err != nil {
		t.Fatal(err)
	}
	var marked []int64
	for _, v := range versions {
		if v.InGap {
			marked = append(marked, v.Revision)
		}
	}
	if want := []int64{30, 40, 50}; !slices.Equal(marked, want) {
		t.Errorf("revisions %d are in the gap, want %d", marked, want)
	}
}
