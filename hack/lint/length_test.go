// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"strings"
	"testing"
)

// maxLines is the maximum number of lines in a Go file.
const maxLines = 400

func TestFilesAreShort(t *testing.T) {
	for file, text := range contents(t, func(file string) bool { return strings.HasSuffix(file, ".go") && !isExempt(file) }) {
		if lines := bytes.Count(text, []byte("\n")); lines > maxLines {
			t.Errorf("%s has %d lines, more than %d: split it by topic", file, lines, maxLines)
		}
	}
}
