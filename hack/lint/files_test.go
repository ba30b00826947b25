// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"iter"
	"os"
	"path/filepath"
	"testing"
)

// root is the folder of the repository.
var root = filepath.Join("..", "..")

// contents returns the files that git knows or would add and that are wanted, each with its contents. A
// deletion that is not committed yet counts.
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
