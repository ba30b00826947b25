// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package text

import (
	"strings"
	"testing"
	"testing/quick"
	"unicode/utf8"
)

func TestShorten(t *testing.T) {
	for _, tt := range []struct {
		text string
		want string
	}{
		{"", ""},
		{"12345678", "12345678"},
		{"123456789", "12345…"},
		{"1234ä789", "1234…"},
		{"ab\xffcd", "ab\uFFFDcd"},
		{"abcdef\xff", "abcde…"},
		{"a\xff\xff\xff\xff\xff\xff\xff\xff", "a\uFFFD…"},
	} {
		if got := Shorten(tt.text, 8); got != tt.want {
			t.Errorf("Shorten(%q) is %q, want %q", tt.text, got, tt.want)
		}
	}
	if err := quick.Check(func(text string, raw []byte, limit uint8) bool {
		for _, in := range []string{text, string(raw), strings.Repeat(text, 3)} {
			got := Shorten(in, 3+int(limit))
			if len(got) > 3+int(limit) || !utf8.ValidString(got) {
				return false
			}
			if len(in) <= 3+int(limit) && utf8.ValidString(in) && got != in {
				return false
			}
		}
		return true
	}, nil); err != nil {
		t.Error(err)
	}
}

func TestCut(t *testing.T) {
	for _, tc := range []struct {
		text  string
		limit int
		want  string
	}{{"", 3, ""}, {"abc", 3, "abc"}, {"abcd", 3, "abc"}, {"äb", 1, "\xc3"}} {
		if got := Cut(tc.text, tc.limit); got != tc.want {
			t.Errorf("%q cut to %d bytes is %q, want %q", tc.text, tc.limit, got, tc.want)
		}
	}
}
