// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package namelock

import (
	"fmt"
	"os"
	"testing"
)

func TestLock(t *testing.T) {
	// All processes of a user share the names, and so do other runs of this test.
	name := fmt.Sprint(t.Name(), "-", os.Getpid())
	if Held(name) {
		t.Fatal("a name is held that no process has locked")
	}
	l, err := Take(name)
	if err != nil {
		t.Fatal(err)
	}
	if !Held(name) {
		t.Error("a name is not held that this process has locked")
	}
	if _, err := Take(name); err == nil {
		t.Error("a name was locked twice")
	}
	if err := l.Release(); err != nil {
		t.Error(err)
	}
	if Held(name) {
		t.Error("a name is held that was released")
	}
}
