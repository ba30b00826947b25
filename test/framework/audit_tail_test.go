// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// TestAuditTail checks that each line of an audit log is read once, also if the log is renamed at its maximum size.
func TestAuditTail(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.log")
	write := func(text string) {
		t.Helper()
		file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		if _, err := file.WriteString(text); err != nil {
			t.Fatal(err)
		}
	}
	rename := func(name string) {
		t.Helper()
		if err := os.Rename(path, filepath.Join(filepath.Dir(path), name)); err != nil {
			t.Fatal(err)
		}
	}
	tail := &auditTail{path: path}
	defer tail.close()
	expect := func(want ...string) {
		t.Helper()
		var got []string
		if err := tail.each(func(line string) error { got = append(got, line); return nil }); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(got, want) {
			t.Errorf("read %q, want %q", got, want)
		}
	}
	write("before\n")
	tail.offset = int64(len("before\n"))
	expect()
	write("a\nb\nincom")
	expect("a\n", "b\n")
	write("plete\nlast\n")
	rename("audit-1.log")
	expect("incomplete\n", "last\n")
	write("first\n")
	expect("first\n")
	write("second\n")
	rename("audit-2.log")
	write("third\nfourth\n")
	expect("second\n", "third\n", "fourth\n")
	expect()
}
