// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"
)

// notesOf returns the section of a changelog about a version, or until a section of that name is
// written, the section Unreleased.
func notesOf(changelog, version string) (string, error) {
	for _, name := range []string{strings.TrimPrefix(version, "v"), "Unreleased"} {
		_, section, found := strings.Cut(changelog, "\n## ["+name+"]")
		if !found {
			continue
		}
		_, section, _ = strings.Cut(section, "\n")
		section, _, _ = strings.Cut(section, "\n## ")
		return strings.TrimSpace(section) + "\n", nil
	}
	return "", fmt.Errorf("the changelog has a section neither of %s nor named Unreleased", version)
}
