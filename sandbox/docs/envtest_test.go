// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package docs contains the documentation of the sandbox and the tests that keep its pages correct.
package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestEnvtestPage checks that all Go code in envtest.md is copied from the guestbook example's
// tests.
func TestEnvtestPage(t *testing.T) {
	page, err := os.ReadFile("envtest.md")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join("..", "examples", "guestbook", "internal", "controller", "guestbook_controller_test.go")
	code, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	shown := regexp.MustCompile("(?s)```go\n(.*?)```").FindAllSubmatch(page, -1)
	if len(shown) == 0 {
		t.Error("envtest.md shows no code")
	}
	for _, block := range shown {
		if !strings.Contains(string(code), string(block[1])) {
			t.Errorf("%s does not have this code of envtest.md: copy it again\n%s", file, block[1])
		}
	}
}
