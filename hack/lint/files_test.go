// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"iter"
	"os"
	"path/filepath"
	"testing"
)

// root is the path of the repository's root.
var root = filepath.Join("..", "..")

// contents returns the contents of the wanted files, keyed by path, among the files that git tracks
// or would add. It skips files that were deleted in the worktree.
func contents(t *testing.T, wanted func(file string) bool) iter.Seq2[string, []byte] {
	t.Helper()
	files, err := listFiles(root)
	if err != nil {
		t.Fatal(err)
	}
	return func(yield func(string, []byte) bool) {
		for _, file := range files {
			if !wanted(file) {
				continue
			}
			text, err := os.ReadFile(filepath.Join(root, file))
			if os.IsNotExist(err) {
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			if !yield(file, text) {
				return
			}
		}
	}
}
