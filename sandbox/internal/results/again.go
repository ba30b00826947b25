// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package results

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// earlierDir is the subdirectory for findings that were made with earlier versions of the inputs. A
// finding is removed from it when its case (a fault or edits) has been run again.
const earlierDir = "earlier"

// setAside moves all findings to earlierDir and deletes the records of all cases, so that the cases
// are run again. If it is interrupted, it can be called again.
func setAside(dir string) error {
	if err := os.MkdirAll(filepath.Join(dir, earlierDir), 0o700); err != nil {
		return err
	}
	found, err := filepath.Glob(filepath.Join(dir, findingFiles))
	if err != nil {
		return err
	}
	for _, file := range found {
		if err := os.Rename(file, filepath.Join(dir, earlierDir, filepath.Base(file))); err != nil {
			return err
		}
	}
	return os.RemoveAll(filepath.Join(dir, playedFile))
}

// forget deletes the records of all cases and all findings.
func forget(dir string) error {
	if err := setAside(dir); err != nil {
		return err
	}
	earlier := filepath.Join(dir, earlierDir)
	found, err := filepath.Glob(filepath.Join(earlier, findingFiles))
	for _, file := range found {
		err = errors.Join(err, os.Remove(file))
	}
	_ = os.Remove(earlier)
	return err
}

// Opened prints whether the cases of earlier runs are reused or repeated, and why.
func (b *Book[F]) Opened(w io.Writer, cases string) {
	const date = "2006-01-02 15:04"
	switch {
	case b.last.IsZero() && len(b.Again) == 0:
	case len(b.Played) > 0:
		fmt.Fprintf(w, "%d %s were played before, the last on %s, and are not played again: begin from the start with --fresh.\n", b.done(), cases, b.last.Format(date))
	default:
		since, why := "", ""
		if !b.last.IsZero() {
			since = " since " + b.last.Format(date)
		}
		if len(b.changed) > 0 {
			why = fmt.Sprintf("Changed%s: %s. ", since, strings.Join(b.changed, ", "))
		}
		fmt.Fprintf(w, "%sAll %s are played again, first those with which something was found before: %d.\n", why, cases, len(b.Again))
	}
}

// Replayed removes the finding of the case with the given ID from the findings of earlier versions
// of the inputs, because the case has been run again.
func (b *Book[F]) Replayed(id string) {
	i := slices.IndexFunc(b.Again, func(f F) bool { return f.Case() == id })
	if i < 0 {
		return
	}
	_ = os.Remove(filepath.Join(b.dir, earlierDir, File(b.Again[i])))
	_ = os.Remove(filepath.Join(b.dir, earlierDir)) // Remove fails unless the directory is empty, which is intended.
	b.Again = slices.Delete(b.Again, i, i+1)
}
