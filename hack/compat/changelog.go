// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"regexp"
	"strings"
)

var (
	listItem = regexp.MustCompile(`(?m)^- `)
	quoted   = regexp.MustCompile("`([^`]+)`")
)

// namedBreaks returns the set of names in the changelog's list items that begin with **Breaking**, in
// the sections above the section of the given version:
//
//   - **Breaking**: `flag tidekeeper --old`: use --new.
func namedBreaks(changelog, version string) map[string]bool {
	newer, _, _ := strings.Cut(changelog, "\n## ["+strings.TrimPrefix(version, "v")+"]")
	named := map[string]bool{}
	for _, item := range listItem.Split(newer, -1) {
		if !strings.HasPrefix(item, "**Breaking**") {
			continue
		}
		for _, name := range quoted.FindAllStringSubmatch(item, -1) {
			named[strings.Join(strings.Fields(name[1]), " ")] = true
		}
	}
	return named
}

var heading = regexp.MustCompile(`(?m)^## \[(\d+\.\d+\.\d+[^\]]*)\]`)

// releasedVersions returns the versions with a section in the changelog, newest first.
func releasedVersions(changelog string) []string {
	var versions []string
	for _, match := range heading.FindAllStringSubmatch(changelog, -1) {
		versions = append(versions, "v"+match[1])
	}
	return versions
}
