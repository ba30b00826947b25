// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package room

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

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
	r := newRecord("cases", setting.Number(t, "CASES", 2000, 1), setting.Number(t, "SEED", 1, 0))
	for i := range r.Worlds {
		w := newWorld(r.seed(i))
		says := w.fit()
		got, err := o.copies(t.Context(), w, rand.New(rand.NewPCG(w.seed, 2)))
		if err != nil {
			t.Fatal(err)
		}
		r.add(w, says, int64(got))
		if int64(got) == says.Copies || int64(got) < says.Copies && len(says.AtMost) > 0 {
			continue
		}
		t.Errorf("SEED=%d: %d copies fit (not evaluated: %q), and the scheduler places %d", w.seed, says.Copies, says.AtMost, got)
		if os.Getenv("CASES") == "1" {
			for _, object := range []any{w.nodes, w.pods, w.volumes, w.copy, says} {
				text, _ := yaml.Marshal(object)
				t.Logf("%s", text)
			}
		}
	}
	r.report(t)
}

// record holds how often each method was right. make plots draws it.
type record struct {
	// Size is the name of the record and of its file: "cases" for the scheduler's plugins, or
	// "sample" for kube-scheduler itself.
	Size          string         `json:"size"`
	Worlds        int            `json:"worlds"`
	First         int            `json:"first"`
	Cores         int            `json:"cores"`
	WorldsPerSec  float64        `json:"worldsPerSecond"`
	Methods       []*tally       `json:"methods"`
	AtMostBecause map[string]int `json:"atMostBecause"`
	began         time.Time
}

// tally counts the answers of a method. An answer is exact, or promises too much or too little; an
// upper bound that is not exceeded is at most.
type tally struct {
	Name      string `json:"name"`
	Exact     int    `json:"exact"`
	TooMuch   int    `json:"tooMuch"`
	TooLittle int    `json:"tooLittle"`
	AtMost    int    `json:"atMost"`
	copies    func(w *world) int64
}

func newRecord(size string, worlds, first int) *record {
	r := &record{Size: size, Worlds: worlds, First: first, Cores: runtime.NumCPU(), AtMostBecause: map[string]int{}, began: time.Now()}
	r.Methods = []*tally{{Name: "kubectl tide pools fit"}}
	for _, m := range arithmetic() {
		r.Methods = append(r.Methods, &tally{Name: m.name, copies: m.copies})
	}
	return r
}

func (r *record) seed(i int) uint64 { return uint64(r.First + i) }

// add counts capacity's answer about a world in which `got` copies are placed, and those of the other
// methods.
func (r *record) add(w *world, says capacity.Fit, got int64) {
	ours, others := r.Methods[0], r.Methods[1:]
	ours.add(says.Copies, got, len(says.AtMost) > 0)
	for _, why := range says.AtMost {
		r.AtMostBecause[why]++
	}
	for _, m := range others {
		m.add(m.copies(w), got, false)
	}
}

// add counts an answer. atMost is set if it is an upper bound.
func (t *tally) add(answer, got int64, atMost bool) {
	switch {
	case atMost && answer >= got:
		t.AtMost++
	case answer == got:
		t.Exact++
	case answer > got:
		t.TooMuch++
	default:
		t.TooLittle++
	}
}

// report logs the record, and writes it to the folder OUT, if that is set.
func (r *record) report(t *testing.T) {
	t.Helper()
	r.WorldsPerSec = float64(r.Worlds) / time.Since(r.began).Seconds()
	t.Logf("%d random clusters from SEED=%d, %.1f a second; at most, because of: %v", r.Worlds, r.First, r.WorldsPerSec, r.AtMostBecause)
	t.Logf("| %-30s | exact | too much | too little | at most |", "number of copies")
	for _, m := range r.Methods {
		t.Logf("| %-30s | %s | %s | %s | %s |", m.Name, percent(m.Exact, r.Worlds), percent(m.TooMuch, r.Worlds), percent(m.TooLittle, r.Worlds), percent(m.AtMost, r.Worlds))
	}
	out := os.Getenv("OUT")
	if out == "" {
		return
	}
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.MkdirAll(out, 0o755), os.WriteFile(filepath.Join(out, r.Size+".json"), append(text, '\n'), 0o644)); err != nil {
		t.Fatal(err)
	}
}

func percent(n, of int) string { return fmt.Sprintf("%.1f %%", 100*float64(n)/float64(of)) }
