// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package results

import (
	"compress/gzip"
	"crypto/sha256"
	"encoding/gob"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// keptFiles is the beginning of the names of files with what was learnt.
const keptFiles = "learnt-"

// keptFile is where in a directory there is what was learnt about something: another file for another
// command, other contents and another sandbox.
func (a *About) keptFile(dir string) (string, error) {
	text, err := json.Marshal([]any{a.Command, a.Contents})
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(text)
	return filepath.Join(dir, fmt.Sprintf("%s%x.gob.gz", keptFiles, sum[:8])), nil
}

// Keep writes what was learnt about something into a directory, beside findings, so that a replay need
// not learn it: unless it is there already.
func (a *About) Keep(dir string, learnt func() (any, error)) error {
	file, err := a.keptFile(dir)
	if err != nil {
		return err
	}
	if _, err := os.Stat(file); err == nil {
		return nil
	}
	value, err := learnt()
	if err != nil {
		return err
	}
	out, err := os.CreateTemp(dir, keptFiles)
	if err != nil {
		return err
	}
	defer os.Remove(out.Name())
	packed := gzip.NewWriter(out)
	err = gob.NewEncoder(packed).Encode(value)
	if err = errors.Join(err, packed.Close(), out.Close()); err != nil {
		return fmt.Errorf("keep what was learnt: %w", err)
	}
	return os.Rename(out.Name(), file)
}

// Recall reads what was kept about something in a directory, and reports whether there is that.
func (a *About) Recall(dir string, learnt any) (bool, error) {
	file, err := a.keptFile(dir)
	if err != nil {
		return false, err
	}
	in, err := os.Open(filepath.Clean(file))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	} else if err != nil {
		return false, err
	}
	defer in.Close()
	packed, err := gzip.NewReader(in)
	if err == nil {
		err = gob.NewDecoder(packed).Decode(learnt)
	}
	if err != nil {
		return false, fmt.Errorf("read what was learnt, %s: %w", file, err)
	}
	return true, nil
}

// forgetKept removes what was learnt.
func forgetKept(dir string) error {
	files, err := filepath.Glob(filepath.Join(dir, keptFiles+"*"))
	for _, file := range files {
		err = errors.Join(err, os.Remove(file))
	}
	return err
}
