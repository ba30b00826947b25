// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import "testing"

// TestPatterns checks that an invalid regular expression in RUN is reported in a single line before
// any suite starts.
func TestPatterns(t *testing.T) {
	t.Parallel()
	for pattern, want := range map[string]string{
		"": "", "^TestPools$": "", "TestA|TestB/part": "", "^(TestA|TestB/[a/b])$": "",
		"(":          "RUN='(': error parsing regexp: missing closing ): `(`",
		"TestA/*":    "RUN='TestA/*': error parsing regexp: missing argument to repetition operator: `*`",
		"^Test[a-z/": "RUN='^Test[a-z/': error parsing regexp: missing closing ]: `[a-z/`",
	} {
		got := ""
		if err := checkPattern(pattern); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%q: %q, want %q", pattern, got, want)
		}
	}
}
