// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package framework

import "testing"

func TestWithoutComments(t *testing.T) {
	for source, want := range map[string]string{
		"a := 1\n// Why.\nb := 2\n":                        "a := 1\nb := 2\n",
		"if a {\n\t// Why,\n\t// and how.\n\treturn\n}":    "if a {\n\treturn\n}",
		"a := 1 // Why.\nb := \"// no comment\"\n":         "a := 1 \nb := \"// no comment\"\n",
		"//go:embed x\nvar a = `\n// text\n`\n/* why */\n": "//go:embed x\nvar a = `\n// text\n`\n",
		"// Why.":             "",
		"a(/* none */ nil)\n": "a( nil)\n",
	} {
		if got := withoutComments(source); got != want {
			t.Errorf("%q becomes %q, want %q", source, got, want)
		}
	}
}
