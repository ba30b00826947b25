// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package docs holds the pages of the kit, and tests that keep them true.
package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The code of envtest.md is that of a file that is compiled and run.
func TestEnvtestPage(t *testing.T) {
	page, err := os.ReadFile("envtest.md")
	if err != nil {
		t.Fatal(err)
	}
	var shown []string
	for _, block := range regexp.MustCompile("(?s)```go\n(.*?)```").FindAllSubmatch(page, -1) {
		shown = append(shown, string(block[1]))
	}
	file := filepath.Join("..", "examples", "guestbook", "internal", "controller", "guestbook_controller_test.go")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	_, code, _ := strings.Cut(string(text), "\npackage controller\n")
	if want := []string{"package controller\n" + code}; !slices.Equal(shown, want) {
		t.Errorf("the code of envtest.md is not that of %s: copy it, from the line of the package on", file)
	}
}
