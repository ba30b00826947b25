// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package room

import (
	"fmt"
	"math/rand/v2"
	"os"
	"testing"

	"sigs.k8s.io/yaml"

	"tidekeeper.dev/tidekeeper/internal/capacity"
	"tidekeeper.dev/tidekeeper/internal/test/setting"
)

// TestFitEqualsScheduler compares capacity's number of copies with the scheduler's plugins in random
// worlds, and logs how many answers were exact, beside simpler arithmetic. CASES sets the number of
// worlds, SEED the first.
func TestFitEqualsScheduler(t *testing.T) {
	o, err := newOracle(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	first, exact, atMost, reasons := setting.Number(t, "SEED", 1, 0), 0, 0, map[string]int{}
	cases, simple := setting.Number(t, "CASES", 2000, 1), arithmetic()
	for i := range cases {
		seed := uint64(first + i)
		w := newWorld(seed)
		var names []string
		for _, n := range w.nodes {
			names = append(names, n.Name)
		}
		says := capacity.New(w.nodes, w.pods).Members(names).Fit(w.copy)
		got, err := o.copies(t.Context(), w, rand.New(rand.NewPCG(seed, 2)))
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range simple {
			switch answer := a.copies(w); {
			case answer == int64(got):
				a.exact++
			case answer > int64(got):
				a.tooMuch++
			}
		}
		switch {
		case len(says.AtMost) > 0 && int64(got) <= says.Copies:
			atMost++
			reasons[fmt.Sprint(says.AtMost)]++
		case len(says.AtMost) == 0 && int64(got) == says.Copies:
			exact++
		default:
			t.Errorf("SEED=%d: %d copies fit (not evaluated: %q), and the scheduler places %d", seed, says.Copies, says.AtMost, got)
			if os.Getenv("CASES") == "1" {
				for _, object := range []any{w.nodes, w.pods, w.copy, says} {
					text, _ := yaml.Marshal(object)
					t.Logf("%s", text)
				}
			}
		}
	}
	t.Logf("%d random clusters from SEED=%d; at most, because of: %v", cases, first, reasons)
	t.Logf("| %-30s | exact | too much | too little | at most |", "number of copies")
	t.Logf("| %-30s | %s | %s | %s | %s |", "kubectl tide pools fit", percent(exact, cases), percent(cases-exact-atMost, cases), percent(0, cases), percent(atMost, cases))
	for _, a := range simple {
		t.Logf("| %-30s | %s | %s | %s | %s |", a.name, percent(a.exact, cases), percent(a.tooMuch, cases), percent(cases-a.exact-a.tooMuch, cases), percent(0, cases))
	}
}

func percent(n, of int) string { return fmt.Sprintf("%.1f %%", 100*float64(n)/float64(of)) }
