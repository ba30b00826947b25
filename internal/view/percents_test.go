// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package view

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"tidekeeper.dev/tidekeeper/internal/capacity"
)

// TestWholePercents checks with random shares that the rounded percentages add up to 100, differ
// from the shares by less than 1, and keep the shares' order.
func TestWholePercents(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		requests, total := make([]float64, 1+random.IntN(8)), 0.0
		for i := range requests {
			requests[i] = float64(1 + random.IntN(20))
			total += requests[i]
		}
		slices.SortFunc(requests, func(a, b float64) int { return cmp.Compare(b, a) })
		shares := make([]capacity.Share, len(requests))
		for i, r := range requests {
			shares[i].Percent = 100 * r / total
		}
		sum, last := 0, 100
		for i, p := range WholePercents(shares) {
			sum += p.Percent
			if math.Abs(float64(p.Percent)-shares[i].Percent) >= 1 || p.Percent > last {
				t.Fatalf("%v of %v: %d after %d", shares[i].Percent, requests, p.Percent, last)
			}
			last = p.Percent
		}
		if sum != 100 {
			t.Fatalf("%v add up to %d", requests, sum)
		}
	}
}
