// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Command faults writes the table of the faults of explore and fuzz into pages of the
// documentation:
//
//	go run ./hack/faults docs/faults.md docs/fuzz.md
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/faults"
)

func main() {
	for _, page := range os.Args[1:] {
		if err := write(filepath.Clean(page)); err != nil {
			fmt.Fprintf(os.Stderr, "%s: %v\n", page, err)
			os.Exit(1)
		}
	}
}

// write regenerates the generated sections of a documentation page.
func write(page string) error {
	text, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	now, err := faults.Replace(string(text))
	if err != nil {
		return err
	}
	return os.WriteFile(page, []byte(now), 0o644) //nolint:gosec // Documentation pages are world-readable.
}
