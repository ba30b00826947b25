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

// played returns a book that has processed the given output of a suite, and the output that the
// book has printed.
func played(t *testing.T, in string) (*book, string) {
	t.Helper()
	var out strings.Builder
	b := newBook(&out)
	if err := b.read("s", strings.NewReader(in)); err != nil {
		t.Fatal(err)
	}
	return b, out.String()
}

func TestBook(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		in, printed, end string
		failed           bool
	}{
		"passed": {
			in: `{"Action":"output","Package":"x/p","Test":"TestA","Output":"=== RUN TestA\n"}
{"Action":"pass","Package":"x/p","Test":"TestA","Elapsed":1}
{"Action":"pass","Package":"x/p","Test":"TestB/part","Elapsed":9}
{"Action":"pass","Package":"x/p","Test":"TestB","Elapsed":9.25}
{"Action":"output","Package":"x/p","Output":"PASS\n"}
{"Action":"output","Package":"x/p","Output":"ok x/p 10s\n"}
{"Action":"pass","Package":"x/p","Elapsed":10}
{"Action":"output","Package":"x/q","Output":"? x/q [no test files]\n"}
{"Action":"skip","Package":"x/q","Elapsed":0}
`,
			printed: "ok x/p 10s\n",
			end: `
The slowest tests:
     9.2 s  x/p TestB
     1.0 s  x/p TestA

in 1m30s
2 passed, 0 failed, 0 skipped
`,
		},
		"failed": {
			in: `{"Action":"output","Package":"x/p","Test":"TestA","Output":"=== RUN   TestA\n"}
{"Action":"output","Package":"x/p","Test":"TestA","Output":"    a_test.go:1: want 1, got 2\n"}
{"Action":"fail","Package":"x/p","Test":"TestA","Elapsed":1}
{"Action":"fail","Package":"x/p","Elapsed":10}
`,
			printed: "=== RUN   TestA\n    a_test.go:1: want 1, got 2\n",
			end: `
The slowest tests:
     1.0 s  x/p TestA

FAILED:
  x/p TestA
          a_test.go:1: want 1, got 2
    alone: make suite SUITE=s RUN='^TestA$'

in 1m30s
0 passed, 1 failed, 0 skipped
`,
			failed: true,
		},
		"a part failed": {
			in: `{"Action":"output","Package":"x/p","Test":"TestA/one","Output":"    a_test.go:7: wrong\n"}
{"Action":"fail","Package":"x/p","Test":"TestA/one","Elapsed":1}
{"Action":"fail","Package":"x/p","Test":"TestA","Elapsed":1}
{"Action":"fail","Package":"x/p","Elapsed":10}
`,
			printed: "    a_test.go:7: wrong\n    a_test.go:7: wrong\n",
			end: `
The slowest tests:
     1.0 s  x/p TestA

FAILED:
  x/p TestA
          a_test.go:7: wrong
    alone: make suite SUITE=s RUN='^TestA$'

in 1m30s
0 passed, 1 failed, 0 skipped
`,
			failed: true,
		},
		"ended in the middle": {
			in: `{"Action":"run","Package":"x/p","Test":"TestA"}
{"Action":"output","Package":"x/p","Test":"TestA","Output":"panic: no\n"}
{"Action":"fail","Package":"x/p","Elapsed":10}
`,
			printed: "panic: no\n",
			end: `
FAILED:
  x/p
      panic: no
    alone: make suite SUITE=s

in 1m30s
0 passed, 1 failed, 0 skipped
`,
			failed: true,
		},
		"go test was killed": {
			in: `{"Action":"start","Package":"x/p"}
{"Action":"pass","Package":"x/p","Test":"TestA","Elapsed":1}
`,
			printed: "x/p: its tests did not end\n",
			end: `
The slowest tests:
     1.0 s  x/p TestA

FAILED:
  x/p
      its tests did not end
    alone: make suite SUITE=s

in 1m30s
1 passed, 1 failed, 0 skipped
`,
			failed: true,
		},
		"not compiled": {
			in: `{"ImportPath":"x/p","Action":"build-output","Output":"a.go:1: undefined\n"}
{"ImportPath":"x/p","Action":"build-fail"}
go: more
`,
			printed: "a.go:1: undefined\ngo: more\n",
			end: `
FAILED:
  x/p
      it does not compile
    alone: make suite SUITE=s

in 1m30s
0 passed, 1 failed, 0 skipped
`,
			failed: true,
		},
		"skipped": {
			in: `{"Action":"output","Package":"x/p","Test":"TestA","Output":"    a_test.go:5: no terminal here\n"}
{"Action":"skip","Package":"x/p","Test":"TestA","Elapsed":1}
{"Action":"output","Package":"x/q","Output":"SKIPPED: there is no browser\n"}
{"Action":"pass","Package":"x/q","Elapsed":10}
`,
			printed: "SKIPPED: there is no browser\n",
			end: `
SKIPPED:
  x/p TestA: no terminal here
  x/q: there is no browser

in 1m30s
0 passed, 0 failed, 2 skipped
`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, printed := played(t, test.in)
			if printed != test.printed {
				t.Errorf("printed\n%s\nwant\n%s", printed, test.printed)
			}
			s := b.summarize(90 * time.Second)
			var end strings.Builder
			s.write(&end)
			if end.String() != test.end {
				t.Errorf("the end is\n%s\nwant\n%s", end.String(), test.end)
			}
			if s.ok() == test.failed {
				t.Errorf("ok is %t", s.ok())
			}
		})
	}
}

func TestRecord(t *testing.T) {
	t.Parallel()
	b, _ := played(t, `{"Action":"pass","Package":"x/p","Test":"TestA"}
{"Action":"pass","Package":"x/p","Test":"TestA/part"}
{"Action":"skip","Package":"x/p","Test":"TestB"}
{"Action":"fail","Package":"x/q","Test":"TestC"}
`)
	b.suiteEnded(sampleSuite, "fail", 1, "")
	file := filepath.Join(t.TempDir(), "kubernetes", "1.34.json")
	if err := newRecord("v1.34.4", time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), b.summarize(0)).write(file); err != nil {
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

func TestProgress(t *testing.T) {
	t.Parallel()
	b, _ := played(t, `{"Action":"pass","Package":"x/p","Test":"TestA"}
{"Action":"fail","Package":"x/p","Test":"TestB"}
{"Action":"pass","Package":"x/p"}
`)
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	// The test named TestPaused waits for its turn, and is never continued.
	b.now = func() time.Time { return start.Add(-time.Minute) }
	b.line("s", `{"Action":"run","Package":"x/p","Test":"TestPaused"}`)
	b.line("s", `{"Action":"pause","Package":"x/p","Test":"TestPaused"}`)
	for i, name := range []string{"TestLong", "TestLong/part", "TestLater", "TestLast"} {
		b.now = func() time.Time { return start.Add(time.Duration(i) * 10 * time.Second) }
		b.line("s", `{"Action":"run","Package":"x/p","Test":"`+name+`"}`)
	}
	b.suiteEnded("s", "pass", 1, "")
	b.now = func() time.Time { return start.Add(95 * time.Second) }
	const want = "1m35s: 1 of 3 suites, 1 packages, 1 tests passed, 1 failed, 0 skipped; running: x/p TestLong 1m35s, x/p TestLater 1m15s"
	if got := b.progress(3, start); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// TestEndOfALongFailure checks that the messages of a failed test are repeated after the log that
// follows them.
func TestEndOfALongFailure(t *testing.T) {
	t.Parallel()
	in := `{"Action":"output","Package":"x/p","Test":"TestA","Output":"    a_test.go:1: want 1, got 2\n"}` + "\n"
	for range mostLines {
		in += `{"Action":"output","Package":"x/p","Test":"TestA","Output":"        a line of a log\n"}` + "\n"
	}
	b, _ := played(t, in+`{"Action":"fail","Package":"x/p","Test":"TestA","Elapsed":1}`+"\n")
	var end strings.Builder
	b.summarize(0).write(&end)
	const want = `
      in short:
          a_test.go:1: want 1, got 2
              a line of a log
              a line of a log
              a line of a log
    alone: make suite SUITE=s RUN='^TestA$'
`
	if !strings.Contains(end.String(), want) {
		t.Errorf("the end is\n%s\nwant\n%s", end.String(), want)
	}
}

// TestScreen checks that, on a terminal, the progress line is rewritten below the output of the
// suites.
func TestScreen(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	s := &screen{out: &out, terminal: true, width: 20}
	for _, step := range []func(){
		func() { s.show("1 of 3") },
		func() { _, _ = s.Write([]byte("ok x/p\n")) },
		func() { s.show("2 of 3, and much that does not fit") },
		s.clear,
	} {
		step()
	}
	const want = "\r\x1b[K1 of 3" + "\r\x1b[Kok x/p\n1 of 3" + "\r\x1b[K2 of 3, and much th…" + "\r\x1b[K"
	if out.String() != want {
		t.Errorf("got  %q\nwant %q", out.String(), want)
	}
}
