// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestWrongInputs checks that each invalid input of make release is reported in a single line that
// begins with the name of the make variable.
func TestWrongInputs(t *testing.T) {
	dir := t.TempDir()
	full := filepath.Join(dir, "full")
	if err := os.MkdirAll(filepath.Join(full, "mine"), 0o755); err != nil {
		t.Fatal(err)
	}
	noKey := filepath.Join(dir, "no.pem")
	if err := os.WriteFile(noKey, []byte("no key"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		change    func(r *release)
		build     string
		out, key  string
		beginning string
	}{
		"nothing":            {},
		"no version":         {change: func(r *release) { r.version = "" }, beginning: "VERSION="},
		"no v":               {change: func(r *release) { r.version = "0.1.0" }, beginning: "VERSION="},
		"a short version":    {change: func(r *release) { r.version = "v0.1" }, beginning: "VERSION="},
		"another scheme":     {change: func(r *release) { r.url = "ftp:x" }, beginning: "URL="},
		"no address":         {change: func(r *release) { r.url = "releases" }, beginning: "URL="},
		"no repository":      {change: func(r *release) { r.image = "Not A Name" }, beginning: "IMAGE="},
		"another program":    {build: "foo/linux/amd64", beginning: "ARCHIVES="},
		"no architecture":    {build: "sandbox/linux", beginning: "ARCHIVES="},
		"no such key":        {key: filepath.Join(dir, "none.pem"), beginning: "KEY="},
		"another file":       {key: noKey, beginning: "KEY="},
		"no such findings":   {change: func(r *release) { r.findings = filepath.Join(dir, "none.json") }, beginning: "FINDINGS="},
		"a folder of others": {out: full, beginning: "OUT="},
	} {
		t.Run(name, func(t *testing.T) {
			r := &release{version: "v0.1.0", image: defaultImage, url: "https://example.com/v0.1.0"}
			if tc.change != nil {
				tc.change(r)
			}
			build, out := "sandbox/linux/amd64", filepath.Join(dir, "new")
			if tc.build != "" {
				build = tc.build
			}
			if tc.out != "" {
				out = tc.out
			}
			err := r.check([]string{build}, out, tc.key)
			switch {
			case tc.beginning == "" && err != nil:
				t.Error(err)
			case tc.beginning != "" && (err == nil || !strings.HasPrefix(err.Error(), tc.beginning) || strings.Contains(err.Error(), "\n")):
				t.Errorf("it says %v, want a line that begins with %s", err, tc.beginning)
			}
		})
	}
}

// TestPushChecksBothNames checks that a repository name without a registry is rejected before
// anything is pushed.
func TestPushChecksBothNames(t *testing.T) {
	for want, args := range map[string][]string{
		"IMAGE=tidekeeper: want a name with its registry": {"--image=tidekeeper", "--charts=registry.example.com/charts"},
		"CHARTS=charts: want a name with its registry":    {"--image=registry.example.com/tidekeeper", "--charts=charts"},
	} {
		err := push(append([]string{"--folder=missing", "--version=v0.1.0"}, args...))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", args, err, want)
		}
	}
}
