// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"bufio"
	"errors"
	"io"
	"os"
)

// auditTail reads the lines that are added to an audit log. When the log reaches its maximum size, the
// API server renames it and starts another one: auditTail reads the rest of the renamed log, and
// continues with the new one.
type auditTail struct {
	path string
	// offset is the position in file. If file is nil, it is the position in the log at path.
	offset int64
	file   *os.File
}

// each calls do with each complete line that was added since the last call.
func (a *auditTail) each(do func(line string) error) error {
	for {
		if a.file == nil {
			file, err := os.Open(a.path)
			if err != nil {
				return err
			}
			a.file = file
		}
		// If the log is renamed after this check, the rest of its lines is read by the next call.
		renamed, err := a.isRenamed()
		if err != nil {
			return err
		}
		if err := a.readOn(do); err != nil || !renamed {
			return err
		}
		a.close()
		a.offset = 0
	}
}

// isRenamed reports whether the API server has started another log, and no longer writes to file.
func (a *auditTail) isRenamed() (bool, error) {
	held, err := a.file.Stat()
	if err != nil {
		return false, err
	}
	current, err := os.Stat(a.path)
	if errors.Is(err, os.ErrNotExist) {
		return false, nil // The API server has renamed the log, but not started another one yet.
	}
	return err == nil && !os.SameFile(held, current), err
}

// readOn reads the rest of file. It leaves an incomplete last line to the next call.
func (a *auditTail) readOn(do func(line string) error) error {
	if _, err := a.file.Seek(a.offset, io.SeekStart); err != nil {
		return err
	}
	reader := bufio.NewReader(a.file)
	for {
		line, err := reader.ReadString('\n')
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		a.offset += int64(len(line))
		if err := do(line); err != nil {
			return err
		}
	}
}

// close closes the open log, if any. The next call of each opens the log at path.
func (a *auditTail) close() {
	if a.file != nil {
		_ = a.file.Close()
		a.file = nil
	}
}
