// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package term

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestTable(t *testing.T) {
	rows := [][]Cell{
		{Text("web"), Painted(Green, "Succeeded"), Text("a message that is long")},
		{Text("咖啡店"), Text(""), Text("wide ☕ characters")},
		{Text("e\u0301te\u0301"), Text("x"), Text("evil\x1b[31m\nline\u202e")},
	}
	columns := []Column{{Header: "NAME"}, {Header: "OUTCOME", Name: true}, {Header: "MESSAGE", Text: 6}}
	for _, tc := range []struct {
		name   string
		screen Screen
		want   []string
	}{
		{"a pipe", Screen{}, []string{
			"NAME     OUTCOME     MESSAGE",
			"web      Succeeded   a message that is long",
			"咖啡店               wide ☕ characters",
			"e\u0301te\u0301      x           evil[31m line",
		}},
		{"a narrow terminal", Screen{Terminal: true, Width: 32}, []string{
			"NAME     OUTCOME     MESSAGE",
			"web      Succeeded   a message …",
			"咖啡店               wide ☕ ch…",
			"e\u0301te\u0301      x           evil[31m l…",
		}},
		{"a very narrow terminal", Screen{Terminal: true, Width: 20}, []string{
			"NAME     OUTCOME    MESSA…",
			"web      Succeed…   a mes…",
			"咖啡店              wide …",
			"e\u0301te\u0301      x          evil[…",
		}},
		{"colours", Screen{Terminal: true, Width: 80, Colors: true}, []string{
			"NAME     OUTCOME     MESSAGE",
			"web      \x1b[32mSucceeded\x1b[0m   a message that is long",
			"咖啡店               wide ☕ characters",
			"e\u0301te\u0301      x           evil[31m line",
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var out strings.Builder
			if err := (&Table{Columns: columns, Rows: rows}).WriteTo(&out, tc.screen); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			for line := range strings.Lines(out.String()) {
				if line = strings.TrimRight(line, "\n"); tc.screen.Width > 24 && !tc.screen.Colors && DisplayWidth(line) > tc.screen.Width {
					t.Errorf("%d columns in %d: %s", DisplayWidth(line), tc.screen.Width, line)
				}
			}
		})
	}
}

func TestBar(t *testing.T) {
	for _, tc := range []struct {
		share float64
		want  string
	}{
		{0, ""}, {-1, ""}, {math.NaN(), ""}, {0.0001, "▏"}, {0.25, "█"}, {0.5, "██"}, {0.6, "██▍"}, {0.999, "███▉"}, {1, "████"}, {7, "████"},
	} {
		if diff := cmp.Diff(tc.want, Bar{Share: tc.share}.draw(4, false)); diff != "" {
			t.Errorf("%v (-want +got):\n%s", tc.share, diff)
		}
	}
}

func TestMoment(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	now := time.Date(2026, 10, 24, 23, 30, 0, 0, berlin)
	for _, tc := range []struct {
		at   time.Time
		want string
	}{
		{now, "due since today 23:30"},
		{now.Add(10 * time.Minute), "today 23:40 (in 10m)"},
		{now.Add(10*time.Minute - time.Millisecond), "today 23:39 (in 10m)"},
		{time.Date(2026, 10, 25, 0, 0, 0, 0, berlin), "tomorrow 00:00 (in 30m)"},
		{time.Date(2026, 10, 25, 23, 30, 0, 0, berlin), "tomorrow 23:30 CET (in 25h)"}, // The day has 25 hours.
		{time.Date(2026, 10, 26, 3, 0, 0, 0, berlin), "Mon 03:00 CET (in 29h)"},
		{time.Date(2026, 10, 31, 3, 0, 0, 0, berlin), "Sat 31 Oct 03:00 CET (in 6d5h)"},
		{time.Date(2027, 1, 1, 0, 0, 0, 0, berlin), "Fri 1 Jan 2027 00:00 CET (in 68d)"},
		{now.Add(-24 * time.Hour), "due since yesterday 23:30"},
	} {
		if diff := cmp.Diff(tc.want, Coming(tc.at, now, berlin)); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}

// TestASCII checks that bars consist of ASCII characters on a terminal that does not support UTF-8.
func TestASCII(t *testing.T) {
	for env, want := range map[string]bool{"": false, "LANG=C": true, "LC_ALL=POSIX LANG=de_DE.UTF-8": true, "LANG=en_US.utf8": false, "LC_CTYPE=C.UTF-8 LANG=C": false} {
		values := map[string]string{}
		for pair := range strings.FieldsSeq(env) {
			name, value, _ := strings.Cut(pair, "=")
			values[name] = value
		}
		if got := asciiLocale(func(name string) string { return values[name] }); got != want {
			t.Errorf("%q: %t, want %t", env, got, want)
		}
	}
	table := &Table{Bars: []int{10}, Columns: []Column{{Header: "CPU"}, {Header: "MESSAGE", Text: 8}}, Rows: [][]Cell{
		{{Text: "42%", Bar: &Bar{Share: 0.42, Ground: true}}, Text("a message")}, {{Text: "1%", BarText: 3, Bar: &Bar{Share: 0.01, Ground: true}}, Text("short")},
	}}
	var out strings.Builder
	if err := table.WriteTo(&out, Screen{Terminal: true, Width: 25, ASCII: true}); err != nil {
		t.Fatal(err)
	}
	if want := "CPU              MESSAGE\n####...... 42%   a mes...\n|.........  1%   short\n"; out.String() != want {
		t.Errorf("got\n%swant\n%s", out.String(), want)
	}
}

// TestSpan checks that a cell that spans several columns does not widen them, and is cut only at
// the end of the line.
func TestSpan(t *testing.T) {
	table := &Table{Columns: []Column{{Header: "CONTEXT"}, {Header: "NAME", Name: true}, {Header: "NODES"}}, Rows: [][]Cell{
		{Text("prod"), Text("worker"), Text("3/3")},
		{Text("edge"), {Text: "the cluster cannot be reached", Span: true}},
	}}
	for _, tc := range []struct {
		width int
		want  string
	}{
		{0, "CONTEXT   NAME     NODES\nprod      worker   3/3\nedge      the cluster cannot be reached\n"},
		{30, "CONTEXT   NAME     NODES\nprod      worker   3/3\nedge      the cluster cannot …\n"},
	} {
		var out strings.Builder
		if err := table.WriteTo(&out, Screen{Terminal: tc.width > 0, Width: tc.width}); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(tc.want, out.String()); diff != "" {
			t.Errorf("%d columns (-want +got):\n%s", tc.width, diff)
		}
	}
}
