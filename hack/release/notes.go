// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"
)

// upgrading is the heading of the required section for users who upgrade.
const upgrading = "\n### Upgrading\n"

// notesOf returns a version's section in a changelog. If there is none yet, it returns the section
// Unreleased. It returns an error if the section has no subsection Upgrading.
func notesOf(changelog, version string) (string, error) {
	for _, name := range []string{strings.TrimPrefix(version, "v"), "Unreleased"} {
		_, section, found := strings.Cut(changelog, "\n## ["+name+"]")
		if !found {
			continue
		}
		_, section, _ = strings.Cut(section, "\n")
		section, _, _ = strings.Cut(section, "\n## ")
		if !strings.Contains(section, upgrading) {
			return "", fmt.Errorf("the section [%s] of the changelog does not have %q", name, strings.TrimSpace(upgrading))
		}
		return strings.TrimSpace(section) + "\n", nil
	}
	return "", fmt.Errorf("the changelog has a section neither of %s nor named Unreleased", version)
}
