// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package docs holds the pages of the kit, and tests that keep them true.
package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// The code of envtest.md is from a file that is compiled and run.
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
