// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Command lint finds phrases that this project does not use, in Go comments, Go strings, Markdown
// and YAML. It also finds sleeps without a reason in tests. The phrases are listed in words.go.
// Existing linters check only comments (vale) or single words (misspell), but half of the text that
// users read is in string literals, and most of the list consists of phrases.
//
//	go run ./hack/lint                   # the whole repository, as in make lint
//	go run ./hack/lint internal/restart  # a part of the tree
package main

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

func main() {
	found, err := run(".", os.Args[1:], os.Stdout)
	if err != nil {
		fmt.Fprintln(os.Stderr, "lint:", err)
		os.Exit(2)
	}
	if found > 0 {
		fmt.Fprintf(os.Stderr, "%d places to rewrite; hack/lint/words.go is the list of words\n", found)
		os.Exit(1)
	}
}

// run checks the files under dir that git tracks or would add. If prefixes are given, it checks
// only files whose path has one of them. It prints each finding as file:line: message, and returns
// the number of findings.
func run(dir string, prefixes []string, out io.Writer) (int, error) {
	files, err := listFiles(dir)
	if err != nil {
		return 0, err
	}
	found := 0
	for _, file := range files {
		if isExempt(file) || len(prefixes) > 0 && !hasPrefix(file, prefixes) {
			continue
		}
		source, err := os.ReadFile(filepath.Join(dir, file))
		if os.IsNotExist(err) {
			continue // deleted in the worktree, but still in the index
		}
		if err != nil {
			return found, err
		}
		findings, err := check(file, source)
		if err != nil {
			return found, err
		}
		for _, f := range findings {
			if _, err := fmt.Fprintln(out, f); err != nil {
				return found, err
			}
		}
		found += len(findings)
	}
	return found, nil
}

func listFiles(dir string) ([]string, error) {
	cmd := exec.Command("git", "ls-files", "--cached", "--others", "--exclude-standard", "-z")
	cmd.Dir = dir
	list, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("list the files of %s: %w", dir, err)
	}
	return strings.Split(strings.TrimRight(string(list), "\x00"), "\x00"), nil
}

// isExempt reports whether a file is generated, a copy, or the list of phrases itself.
func isExempt(file string) bool {
	return hasPrefix(file, exempt) || strings.Contains(filepath.Base(file), "zz_generated")
}

func hasPrefix(file string, prefixes []string) bool {
	for _, prefix := range prefixes {
		if strings.HasPrefix(file, prefix) {
			return true
		}
	}
	return false
}
