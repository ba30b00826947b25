// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestReady(t *testing.T) {
	for tag, fails := range map[string]bool{"v0.1.0": false, "v0.2.0": true} {
		if err := inChangelog("## [Unreleased]\n\n## [0.1.0] - 2026-11-26\n", tag); (err != nil) != fails {
			t.Errorf("the section of %s: %v", tag, err)
		}
	}
	for text, fails := range map[string]bool{"Nothing is released yet.": true, "no image is\npublished": false, "It is released.": false, "(until the first, …)": true} {
		if err := trueOfRelease("README.md", []byte(text)); (err != nil) != fails {
			t.Errorf("%s: %v", text, err)
		}
	}
	t.Chdir(t.TempDir())
	dir := filepath.Join(kept, "v0.1.0", "crds")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "a.yaml"), []byte("a"), 0o600); err != nil {
		t.Fatal(err)
	}
	for content, fails := range map[string]bool{"a": false, "b": true} {
		if err := recorded(map[string][]byte{"crds/a.yaml": []byte(content)}, "v0.1.0"); (err != nil) != fails {
			t.Errorf("%s is recorded: %v", content, err)
		}
	}
	if err := ready("v0.1"); err == nil || !strings.Contains(err.Error(), "v0.1.0") {
		t.Errorf("v0.1: %v", err)
	}
}

// TestBreaksOfValues checks that a narrower schema of the chart's values is found.
func TestBreaksOfValues(t *testing.T) {
	const values = `{"properties": {"controllers": {"type": "array", "items": {"enum": ["a", "b"]}}, "keep": {"type": ["boolean", "null"]}, "replicas": {"type": "integer", "maximum": 10}}}`
	file := filepath.Join(t.TempDir(), valuesSchema)
	read := func(text string) *jsonSchema {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		schema, err := readValuesSchema(file)
		if err != nil {
			t.Fatal(err)
		}
		return schema
	}
	for _, tt := range []struct{ from, to, want string }{
		{"10", "11", ""},
		{"10", "5", "value replicas: the maximum was 10, and is 5"},
		{`"a", "b"`, `"a"`, `value controllers[]: the value "b" is gone`},
		{`["boolean", "null"]`, `"boolean"`, "value keep: the type was boolean null, and is boolean"},
		{`"keep"`, `"kept"`, "value keep: is gone"},
	} {
		found := text(compareValues(read(values), read(replaced(t, values, tt.from, tt.to))))
		if strings.Join(found, "\n") != tt.want {
			t.Errorf("%s instead of %s: %q, want %q", tt.to, tt.from, found, tt.want)
		}
	}
}
