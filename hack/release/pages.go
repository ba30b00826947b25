// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
)

// site is the address of the documentation.
const site = "https://tidekeeper.dev/"

// guidePage is the page for users who have only the release's folder. The folder contains it as
// guide.
const (
	guidePage = "docs/tasks/use-a-release.md"
	guide     = "INSTALL.md"
)

// relativeLink matches the target of a link in a Markdown page that is neither an address nor a
// heading of the same page.
var relativeLink = regexp.MustCompile(`\]\(([^)#:\s]+)(#[^)]*)?\)`)

// page reads a Markdown page of the repository, with links to the documentation's site in place of
// relative links, which would lead nowhere in an archive.
func page(file string) (string, error) {
	text, err := os.ReadFile(filepath.FromSlash(file))
	return absolute(string(text), path.Dir(file)), err
}

// absolute replaces the relative links of a page in the given folder.
func absolute(text, folder string) string {
	return relativeLink.ReplaceAllStringFunc(text, func(link string) string {
		parts := relativeLink.FindStringSubmatch(link)
		return "](" + site + strings.TrimSuffix(path.Join(folder, parts[1]), ".md") + parts[2] + ")"
	})
}

// guide adds the page for users who have only this folder, if the folder has all that the page
// uses.
func (r *release) guide() error {
	if !r.hasKit || len(r.plugins) == 0 || len(r.platforms) == 0 {
		return nil
	}
	text, err := page(guidePage)
	r.files[guide] = []byte(strings.NewReplacer("v0.1.0", r.version, "0.1.0", strings.TrimPrefix(r.version, "v")).Replace(text))
	return err
}
