// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"
)

// upgrading is the heading of the part for users who upgrade.
const upgrading = "\n### Upgrading\n"

// notesOf returns the section of a changelog about a version, or until a section of that name is
// written, the section Unreleased. Users who upgrade find out what to do in a part of its own.
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
