// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/faults"
	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/judge"
	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/lab"
	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/observe"
	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/testbed"
	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/workload"
	"tidekeeper.dev/tidekeeper/sandbox/internal/results"
)

// recordSize is the size in bytes of the object in each run's record.
const recordSize = 256 << 10

// heavyOutcome returns the outcome of a run whose record holds an object of recordSize bytes.
func heavyOutcome(reached bool, problems ...judge.Problem) *judge.Outcome {
	object := &unstructured.Unstructured{Object: map[string]any{"data": string(make([]byte, recordSize))}}
	return &judge.Outcome{Reached: reached, Problems: problems, Record: observe.Record{Began: time.Now(), Versions: []observe.Version{{Resource: "configmaps", Object: object}}}}
}

// TestMemoryIsBounded checks that run records are discarded: after 500 faults, explore uses no more
// memory and goroutines than after 100.
func TestMemoryIsBounded(t *testing.T) {
	w := &workload.Workload{Steps: []workload.Step{{Name: "a"}}}
	about, err := results.NewAbout(results.Inputs{Command: []string{"true"}, Subject: w})
	if err != nil {
		t.Fatal(err)
	}
	book, err := Tool.Open(t.TempDir(), about)
	if err != nil {
		t.Fatal(err)
	}
	defer book.Close()
	turn, runs := 0, 0
	q := &queue{
		explorer: &Explorer{Testbeds: &testbed.Maker{Setup: lab.Setup{Command: []string{"true"}}}, Workload: w}, plan: Plan{Plan: results.Plan{Progress: io.Discard}}, book: book, over: t.Context(), history: faults.NewHistory(),
		play: func(_ context.Context, _ string, f *faults.Fault, in setting) (*judge.Outcome, error) {
			if runs++; !in.new {
				turn++
			}
			problem := judge.Problem{Oracle: judge.OtherState, Step: 1, Lines: []string{fmt.Sprintf("configmaps default/%s: it is missing", f.Resource)}}
			switch turn % 10 {
			case 1:
				return heavyOutcome(false), nil
			case 2:
				return heavyOutcome(true), fmt.Errorf("etcd crashed")
			case 3:
				return heavyOutcome(!in.new, problem), nil
			case 4:
				return heavyOutcome(true, problem), nil
			}
			return heavyOutcome(true), nil
		},
	}
	var all []faults.Planned
	for i := range 500 {
		// The names consist of letters because problems that differ only in numbers count as equal.
		name := fmt.Sprintf("%c%c%c", 'a'+i/100, 'a'+i/10%10, 'a'+i%10)
		all = append(all, faults.Planned{Fault: faults.Fault{Kind: "Freeze", Step: 1, Until: 1, Resource: name}, Score: 500 - i})
	}
	q.fill(all)
	measure := func() (heap uint64, goroutines int) {
		var m runtime.MemStats
		runtime.GC()
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc, runtime.NumGoroutine()
	}
	var heap [2]uint64
	var goroutines [2]int
	for range 500 {
		f, ok := q.take(false)
		if !ok {
			t.Fatalf("after %d faults there is none", len(book.Played))
		}
		q.playOne(t.Context(), "lane", f)
		switch len(book.Played) {
		case 100:
			heap[0], goroutines[0] = measure()
		case 500:
			heap[1], goroutines[1] = measure()
		}
	}
	if failed, found := book.Failed(), len(book.Findings); failed != 50 || found != 100 || book.Came(results.NotReached) != 50 || runs != 700 {
		t.Errorf("of 500, %d failed, %d were found, %d not reached, in %d runs", failed, found, book.Came(results.NotReached), runs)
	}
	if grown := int64(heap[1]) - int64(heap[0]); grown > 10*recordSize {
		t.Errorf("the heap has grown by %d bytes, which is %d records of runs", grown, grown/recordSize)
	}
	if goroutines[1] > goroutines[0] {
		t.Errorf("there are %d goroutines, and were %d", goroutines[1], goroutines[0])
	}
}
