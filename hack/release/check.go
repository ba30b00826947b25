// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	"golang.org/x/mod/semver"
)

// programs lists the possible names of a release's archives: the programs and the demo.
var programs = []string{"kubectl-tide", "tidekeeper", "sandbox", demoArchive}

// check returns an error for each invalid input of make release. It runs before the programs are
// built, because building takes minutes.
func (r *release) check(builds []string, out, key string) error {
	var wrong []error
	add := func(format string, args ...any) { wrong = append(wrong, fmt.Errorf(format, args...)) }
	if semver.Canonical(r.version) != r.version || r.version == "" {
		add("VERSION=%s: want a version such as v0.1.0", r.version)
	}
	if u, err := url.Parse(r.url); err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" {
		add("URL=%s: want an address such as https://example.com/releases/v0.1.0", r.url)
	}
	if _, err := name.NewRepository(r.image); err != nil {
		add("IMAGE=%s: want a repository such as registry.example.com/tidekeeper", r.image)
	}
	for _, build := range builds {
		if names := strings.Split(build, "/"); len(names) != 3 || !slices.Contains(programs, names[0]) {
			add("ARCHIVES=%s: want PROGRAM/OS/ARCHITECTURE, with a program of %s", build, strings.Join(programs, ", "))
		}
	}
	if key != "" {
		if err := checkKey(key); err != nil {
			add("KEY=%s: %w", key, err)
		}
	}
	if r.findings != "" {
		if _, err := os.Stat(r.findings); err != nil {
			add("FINDINGS=%s: there is no such file: make findings writes one", r.findings)
		}
	}
	if err := replaceable(out); err != nil {
		add("OUT=%w", err)
	}
	return errors.Join(wrong...)
}

func checkKey(file string) error {
	text, err := os.ReadFile(file)
	if errors.Is(err, os.ErrNotExist) {
		return errors.New("there is no such file")
	}
	if err != nil {
		return err
	}
	_, err = newSigner(text)
	return err
}

// replaceable returns an error if the folder contains files that were not written by an earlier
// run.
func replaceable(out string) error {
	entries, err := os.ReadDir(out)
	if errors.Is(err, os.ErrNotExist) || err == nil && len(entries) == 0 {
		return nil
	}
	if err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join(out, "checksums.txt")); err != nil {
		return fmt.Errorf("%s: it has files, but no release: name an empty folder", out)
	}
	return nil
}
