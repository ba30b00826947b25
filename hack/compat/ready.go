// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"

	"k8s.io/apimachinery/pkg/util/version"
)

// beforeRelease matches what pages say as long as there is no release.
var beforeRelease = regexp.MustCompile(`(?i)(?:is (?:released|published) yet|no release yet|until the first)`)

// ready returns an error for each reason for which this source tree must not be released as the
// given version. A pre-release needs no section of its own in the changelog, and is not recorded.
func ready(tag string) error {
	v, err := version.ParseSemantic(tag)
	if err != nil {
		return fmt.Errorf("%s: want a version such as v0.1.0", tag)
	}
	if v.PreRelease() != "" {
		return nil
	}
	changelog, err := os.ReadFile("CHANGELOG.md")
	if err != nil {
		return err
	}
	files, err := recording()
	if err != nil {
		return err
	}
	pages := []string{"README.md"}
	more, err := filepath.Glob("docs/tasks/*.md")
	if err != nil {
		return err
	}
	errs := []error{inChangelog(string(changelog), tag), recorded(files, tag)}
	for _, page := range append(pages, more...) {
		text, err := os.ReadFile(page)
		if err != nil {
			return err
		}
		errs = append(errs, trueOfRelease(page, text))
	}
	return errors.Join(errs...)
}

func inChangelog(changelog, tag string) error {
	if !slices.Contains(releasedVersions(changelog), tag) {
		return fmt.Errorf("CHANGELOG.md has no section [%s]: give Unreleased the version and the date", tag[1:])
	}
	return nil
}

// recorded returns an error if the given files are not those in test/compat. What is missing there
// could break later without notice.
func recorded(files map[string][]byte, tag string) error {
	for name, content := range files {
		was, err := os.ReadFile(filepath.Join(kept, tag, filepath.FromSlash(name)))
		if err != nil || !bytes.Equal(was, content) {
			return fmt.Errorf("%s/%s is not what this tree has: rename its section in CHANGELOG.md back to Unreleased, run make baseline VERSION=%s, and rename it again", kept, tag, tag)
		}
	}
	return nil
}

func trueOfRelease(page string, text []byte) error {
	if found := beforeRelease.Find(text); found != nil {
		return fmt.Errorf("%s has %q, which is not true of a release", page, found)
	}
	return nil
}
