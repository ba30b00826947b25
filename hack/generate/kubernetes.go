// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/version"
)

// releaseRecord is the record, written by hack/suites, of the last run of make test-kubernetes with
// a Kubernetes release.
type releaseRecord struct {
	Kubernetes, Tested string
	Slice, Failed      bool
	Packages           map[string]struct{ Passed, Failed, Skipped int }
}

// kubernetesPage returns the page about the tested Kubernetes releases, generated from the records
// in a directory.
func kubernetesPage(dir string) (string, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil {
		return "", err
	}
	var records []releaseRecord
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			return "", err
		}
		var r releaseRecord
		if err := json.Unmarshal(text, &r); err != nil {
			return "", fmt.Errorf("%s: %w", path, err)
		}
		if _, err := version.ParseSemantic(r.Kubernetes); err != nil {
			return "", fmt.Errorf("%s: %w", path, err)
		}
		records = append(records, r)
	}
	// Sort the newest release first.
	slices.SortFunc(records, func(a, b releaseRecord) int {
		return cmp.Or(-compareVersions(a.Kubernetes, b.Kubernetes), strings.Compare(b.Tested, a.Tested))
	})
	var b strings.Builder
	b.WriteString("# Releases of Kubernetes\n\n" + notice)
	b.WriteString("What came of the last `make test-kubernetes KUBERNETES=…` with each release: its black-box tests, or with SLICE=1 a sample of them, against the API server, the controller manager and the scheduler of that release.\n\n")
	if len(records) == 0 {
		b.WriteString("No run was recorded yet.\n")
		return b.String(), nil
	}
	b.WriteString("| release | tested on | passed | failed | skipped | of |\n|---|---|---|---|---|---|\n")
	for _, r := range records {
		var passed, failed, skipped int
		for _, c := range r.Packages {
			passed, failed, skipped = passed+c.Passed, failed+c.Failed, skipped+c.Skipped
		}
		result := fmt.Sprint(failed)
		if r.Failed && failed == 0 {
			result = "did not end"
		}
		of := strings.Join(slices.Sorted(maps.Keys(r.Packages)), ", ")
		if r.Slice {
			of = "a slice of " + of
		}
		fmt.Fprintf(&b, "| %s | %s | %d | %s | %d | %s |\n", r.Kubernetes, r.Tested, passed, result, skipped, of)
	}
	return b.String(), nil
}

// compareVersions compares two versions, both of which must be valid.
func compareVersions(a, b string) int {
	compared, _ := version.MustParseSemantic(a).Compare(b)
	return compared
}
