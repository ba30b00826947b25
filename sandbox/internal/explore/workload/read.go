// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"fmt"
	"os"
	"path/filepath"
)

// Read reads and validates a workload file and the files that it includes. Paths in a file are
// relative to the directory of that file.
func Read(file string) (*Workload, error) { return read(file, (*Workload).Compile) }

// ReadForFuzz reads a workload file like [Read], but accepts one without steps, which fuzz does not
// use.
func ReadForFuzz(file string) (*Workload, error) { return read(file, (*Workload).Check) }

// read reads a workload file and the files that it includes. The function validate is called before
// the manifests of steps are read.
func read(file string, validate func(*Workload) error) (*Workload, error) {
	text, err := os.ReadFile(filepath.Clean(file))
	if err != nil {
		return nil, fmt.Errorf("--workload: %w", err)
	}
	w := &Workload{}
	if err = w.parse(text); err == nil {
		err = w.expand()
	}
	if err == nil {
		err = w.include(filepath.Dir(file))
	}
	if err == nil {
		err = validate(w)
	}
	if err == nil {
		err = w.inline(filepath.Dir(file))
	}
	if err != nil {
		return nil, fmt.Errorf("--workload %s: %w", file, err)
	}
	return w, nil
}
