// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package claim

import "testing"

func TestClaim(t *testing.T) {
	name := t.Name()
	if Taken(name) {
		t.Fatal("a name is taken that no process has")
	}
	c, err := Take(name)
	if err != nil {
		t.Fatal(err)
	}
	if !Taken(name) {
		t.Error("a name is not taken that this process has")
	}
	if _, err := Take(name); err == nil {
		t.Error("a name was given twice")
	}
	if err := c.Release(); err != nil {
		t.Error(err)
	}
	if Taken(name) {
		t.Error("a name is taken that was given back")
	}
}
