// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"io"
	"strings"
	"testing"
)

// TestDemoIsBesideTheProgram checks the error of the demo command if the demo program is not in the
// same folder as the sandbox program.
func TestDemoIsBesideTheProgram(t *testing.T) {
	cmd := newRoot()
	cmd.SetArgs([]string{"demo", "--once"})
	cmd.SetOut(io.Discard)
	if err := cmd.ExecuteContext(t.Context()); err == nil || !strings.Contains(err.Error(), "has the program sandbox-demo beside this one") {
		t.Errorf("the error is %v", err)
	}
}
