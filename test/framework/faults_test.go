// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"fmt"
	"testing"
)

// TestShards checks that each test belongs to exactly one shard, and that no shard is empty.
func TestShards(t *testing.T) {
	const of = 8
	played := map[int]int{}
	for i := range 200 {
		name := fmt.Sprintf("TestSafeguards/%d", i)
		for part := 1; part <= of; part++ {
			elsewhere, err := playedElsewhere(name, fmt.Sprintf("%d/%d", part, of))
			if err != nil {
				t.Fatal(err)
			}
			if elsewhere == "" {
				played[part]++
			}
		}
	}
	total := 0
	for _, tests := range played {
		total += tests
	}
	if len(played) != of || total != 200 {
		t.Errorf("of 200, the parts have %v", played)
	}
	if elsewhere, err := playedElsewhere("TestSafeguards/1", ""); elsewhere != "" || err != nil {
		t.Errorf("without parts: %q, %v", elsewhere, err)
	}
	for _, text := range []string{"0/8", "9/8", "2", "2/8x", "two", "1/0"} {
		if _, err := playedElsewhere("TestSafeguards/1", text); err == nil {
			t.Errorf("%q is accepted", text)
		}
	}
}
