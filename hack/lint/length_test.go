// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// maxLines is how long a Go file may be.
const maxLines = 400

// tooLong are packages with files that are still to be split. The list only gets
// shorter.
var tooLong = []string{
	"internal/migrate", "internal/optin", "internal/restart",
}

func TestFilesAreShort(t *testing.T) {
	root := filepath.Join("..", "..")
	files, err := listFiles(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if !strings.HasSuffix(file, ".go") || isExempt(file) || slices.Contains(tooLong, filepath.Dir(file)) {
			continue
		}
		text, err := os.ReadFile(filepath.Join(root, file))
		if os.IsNotExist(err) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if lines := bytes.Count(text, []byte("\n")); lines > maxLines {
			t.Errorf("%s has %d lines, more than %d: split it by topic", file, lines, maxLines)
		}
	}
}
