// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"os"
	"path"
	"path/filepath"
	"slices"
	"time"
)

// record is the stored result of a run: the Kubernetes release, the date, whether only a sample of
// the tests ran (Slice), whether the run failed, and the numbers of test results per package.
type record struct {
	Kubernetes string            `json:"kubernetes"`
	Tested     string            `json:"tested"`
	Slice      bool              `json:"slice,omitempty"`
	Failed     bool              `json:"failed,omitempty"`
	Packages   map[string]counts `json:"packages"`
}

type counts struct {
	Passed  int `json:"passed"`
	Failed  int `json:"failed,omitempty"`
	Skipped int `json:"skipped,omitempty"`
}

// newRecord returns the record of a run with the given Kubernetes release.
func newRecord(kubernetes string, now time.Time, s summary) record {
	r := record{Kubernetes: kubernetes, Tested: now.UTC().Format(time.DateOnly), Slice: len(s.suites) == 1 && s.suites[0].suite == sampleSuite, Failed: !s.ok(), Packages: map[string]counts{}}
	for _, t := range slices.Concat(s.passed, s.failed, s.skipped) {
		if t.name == "" {
			continue
		}
		name := path.Base(t.pkg)
		c := r.Packages[name]
		switch t.action {
		case "pass":
			c.Passed++
		case "fail":
			c.Failed++
		case "skip":
			c.Skipped++
		}
		r.Packages[name] = c
	}
	return r
}

func (r record) write(file string) error {
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	return os.WriteFile(file, append(text, '\n'), 0o644)
}
