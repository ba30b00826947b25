// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestReport(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		in, want string
		failed   bool
	}{
		"passed": {
			`{"Action":"output","Package":"x/p","Test":"TestA","Output":"=== RUN TestA\n"}
{"Action":"pass","Package":"x/p","Test":"TestA","Elapsed":1}
{"Action":"pass","Package":"x/p","Test":"TestB/part","Elapsed":9}
{"Action":"pass","Package":"x/p","Test":"TestB","Elapsed":9.25}
{"Action":"output","Package":"x/p","Output":"PASS\n"}
{"Action":"output","Package":"x/p","Output":"ok x/p 10s\n"}
{"Action":"pass","Package":"x/p","Elapsed":10}
`, "ok x/p 10s\nThe slowest tests:\n     9.2 s  x/p  TestB\n     1.0 s  x/p  TestA\n", false,
		},
		"failed": {
			`{"Action":"output","Package":"x/p","Test":"TestA","Output":"a.go:1: wrong\n"}
{"Action":"fail","Package":"x/p","Test":"TestA","Elapsed":1}
{"Action":"fail","Package":"x/p","Elapsed":10}
`, "a.go:1: wrong\nThe slowest tests:\n     1.0 s  x/p  TestA\n", true,
		},
		"ended in the middle": {
			`{"Action":"output","Package":"x/p","Test":"TestA","Output":"panic: no\n"}
{"Action":"fail","Package":"x/p","Elapsed":10}
`, "panic: no\nThe slowest tests:\n", true,
		},
		"go test was killed": {
			`{"Action":"start","Package":"x/p"}
{"Action":"pass","Package":"x/p","Test":"TestA","Elapsed":1}
`, "x/p: its tests did not end\nThe slowest tests:\n     1.0 s  x/p  TestA\n", true,
		},
		"not compiled": {
			`{"ImportPath":"x/p","Action":"build-output","Output":"a.go:1: undefined\n"}
{"ImportPath":"x/p","Action":"build-fail"}
go: more
`, "a.go:1: undefined\ngo: more\nThe slowest tests:\n", true,
		},
	} {
		var out strings.Builder
		_, failed, err := report(strings.NewReader(test.in), &out)
		if err != nil || failed != test.failed || out.String() != test.want {
			t.Errorf("%s: failed: %t, %v, printed\n%s\nwant\n%s", name, failed, err, out.String(), test.want)
		}
	}
}

func TestRecord(t *testing.T) {
	t.Parallel()
	tests, failed, err := report(strings.NewReader(`{"Action":"pass","Package":"x/p","Test":"TestA"}
{"Action":"pass","Package":"x/p","Test":"TestA/part"}
{"Action":"skip","Package":"x/p","Test":"TestB"}
{"Action":"fail","Package":"x/q","Test":"TestC"}
`), &strings.Builder{})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "kubernetes", "1.34.json")
	if err := newRecord("v1.34.4", true, time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), tests, failed).write(file); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(file)
	const want = `{
  "kubernetes": "v1.34.4",
  "tested": "2026-01-02",
  "slice": true,
  "failed": true,
  "packages": {
    "p": {
      "passed": 1,
      "skipped": 1
    },
    "q": {
      "passed": 0,
      "failed": 1
    }
  }
}
`
	if err != nil || string(got) != want {
		t.Errorf("recorded (%v):\n%s\nwant:\n%s", err, got, want)
	}
}
