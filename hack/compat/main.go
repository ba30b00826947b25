// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/version"
	"sigs.k8s.io/yaml"
)

const (
	kept  = "test/compat"
	crds  = "config/crd/bases"
	chart = "charts/tidekeeper"
)

func main() {
	write := flag.String("write", "", "record this tree as a version, such as v0.1.0, that is not released yet")
	tag := flag.String("ready", "", "check that this tree can be released as a version")
	flag.Parse()
	var err error
	switch {
	case *write != "":
		err = record(*write)
	case *tag != "":
		err = ready(*tag)
	default:
		err = check()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "Error:", err)
		os.Exit(1)
	}
}

// check compares this source tree with the latest recorded version.
func check() error {
	changelog, err := os.ReadFile("CHANGELOG.md")
	if err != nil {
		return err
	}
	versions, err := keptVersions()
	if err != nil {
		return err
	}
	for _, released := range releasedVersions(string(changelog)) {
		if !slices.Contains(versions, released) {
			return fmt.Errorf("CHANGELOG.md has a section for %s, which is not in %s: run make baseline VERSION=%s before its section is written", released, kept, released)
		}
	}
	latest := versions[len(versions)-1]
	dir := filepath.Join(kept, latest)
	before := surface{}
	text, err := os.ReadFile(filepath.Join(dir, "surface.json"))
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, &before); err != nil {
		return err
	}
	after, err := collect()
	if err != nil {
		return err
	}
	kindsBefore, errBefore := kinds(filepath.Join(dir, "crds"))
	kindsAfter, errAfter := kinds(crds)
	valuesBefore, errValuesBefore := readValuesSchema(filepath.Join(dir, valuesSchema))
	valuesAfter, errValuesAfter := readValuesSchema(filepath.Join(chart, valuesSchema))
	if err := errors.Join(errBefore, errAfter, errValuesBefore, errValuesAfter); err != nil {
		return err
	}
	found := slices.Concat(compareKinds(kindsBefore, kindsAfter), compareSurfaces(before, after), compareValues(valuesBefore, valuesAfter))
	return unnamed(found, string(changelog), latest)
}

// unnamed returns an error that lists the breaking changes that the changelog does not name.
func unnamed(found []breach, changelog, latest string) error {
	named := namedBreaks(changelog, latest)
	var lines []string
	for _, b := range found {
		if !named[b.name] {
			lines = append(lines, fmt.Sprintf("  %s: %s", b.name, b.change))
		}
	}
	if len(lines) == 0 {
		return nil
	}
	slices.Sort(lines)
	lines = slices.Compact(lines)
	advice := "Keep it working; docs/reference/policy.md says for how long. If it must break, name it in CHANGELOG.md in an item such as\n  - **Breaking**: `" +
		strings.TrimSpace(strings.SplitN(lines[0], ":", 2)[0]) + "`: what to do instead."
	if !slices.Contains(releasedVersions(changelog), latest) {
		advice = latest + " is not released yet: if the change is meant, run make baseline VERSION=" + latest + "."
	}
	return fmt.Errorf("this breaks users of %s:\n%s\n%s", latest, strings.Join(lines, "\n"), advice)
}

// keptVersions returns the recorded versions, oldest first.
func keptVersions() ([]string, error) {
	entries, err := os.ReadDir(kept)
	if err != nil {
		return nil, err
	}
	var versions []string
	for _, entry := range entries {
		if _, err := version.ParseSemantic(entry.Name()); err == nil && entry.IsDir() {
			versions = append(versions, entry.Name())
		}
	}
	if len(versions) == 0 {
		return nil, fmt.Errorf("%s has no version: run make baseline VERSION=v0.1.0", kept)
	}
	slices.SortFunc(versions, func(a, b string) int {
		if version.MustParseSemantic(a).LessThan(version.MustParseSemantic(b)) {
			return -1
		}
		return 1
	})
	return versions, nil
}

// kinds reads the CRDs in a folder and returns them keyed by name.
func kinds(dir string) (map[string]*crd, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
	if err != nil {
		return nil, err
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("there are no CRDs in %s", dir)
	}
	all := map[string]*crd{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		c := &crd{}
		if err := yaml.Unmarshal(text, c); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		all[c.Name] = c
	}
	return all, nil
}

// record records this source tree's interfaces as a version.
func record(name string) error {
	if v, err := version.ParseSemantic(name); err != nil || !strings.HasPrefix(name, "v") || v.PreRelease() != "" || v.BuildMetadata() != "" {
		return fmt.Errorf("VERSION=%s: want a version that is to be released, such as v0.1.0", name)
	}
	changelog, err := os.ReadFile("CHANGELOG.md")
	if err != nil {
		return err
	}
	if slices.Contains(releasedVersions(string(changelog)), name) {
		return fmt.Errorf("%s is released: what its users depend on is not written again", name)
	}
	files, err := recording()
	if err != nil {
		return err
	}
	dir := filepath.Join(kept, name)
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Join(dir, "crds"), 0o755); err != nil {
		return err
	}
	for path, content := range files {
		if err := os.WriteFile(filepath.Join(dir, path), content, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// recording returns the files in which this source tree's interfaces are recorded.
func recording() (map[string][]byte, error) {
	s, err := collect()
	if err != nil {
		return nil, err
	}
	text, err := s.encode()
	if err != nil {
		return nil, err
	}
	manifest, err := objects()
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{"surface.json": text, "objects.yaml": []byte(manifest)}
	copies, err := filepath.Glob(filepath.Join(crds, "*.yaml"))
	if err != nil {
		return nil, err
	}
	for i, file := range append(copies, filepath.Join(chart, valuesSchema)) {
		name := filepath.Base(file)
		if i < len(copies) {
			name = "crds/" + name
		}
		if files[name], err = os.ReadFile(file); err != nil {
			return nil, err
		}
	}
	return files, nil
}
