// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package words

import "testing"

func TestLines(t *testing.T) {
	for text, want := range map[string]string{"a": "a", " a\nb\n": "a …", "a\n": "a"} {
		if got := OneLine(text); got != want {
			t.Errorf("the line of %q is %q, want %q", text, got, want)
		}
	}
	if got, want := Indent([]string{"a", "b"}), "    a\n    b\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got, want := Indent([]string{" ", ""}), "    (it has written nothing)\n"; got != want {
		t.Errorf("nothing is %q, want %q", got, want)
	}
}

func TestNumbers(t *testing.T) {
	for n, want := range map[int][2]string{0: {"never", "0th"}, 1: {"once", "first"}, 2: {"twice", "second"}, 3: {"3 times", "third"}, 11: {"11 times", "11th"}} {
		if got := [2]string{Times(n), Ordinal(n)}; got != want {
			t.Errorf("%d is %q, want %q", n, got, want)
		}
	}
}
