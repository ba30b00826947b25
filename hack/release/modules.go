// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"strings"
)

// module describes a module that is linked into a binary.
type module struct {
	// path is the module's import path. source and version identify the module that was actually
	// downloaded, which is another module if the module was replaced.
	path, source, version string
	// beside is true if the module was replaced by a folder of this repository. Its licence is then
	// this repository's.
	beside bool
}

// modulesOf returns the modules that are linked into a binary.
func modulesOf(info *debug.BuildInfo) []module {
	modules := make([]module, 0, len(info.Deps))
	for _, dep := range info.Deps {
		m := module{path: dep.Path, source: dep.Path, version: dep.Version}
		// A folder's path means nothing outside of this repository, and its version is "(devel)".
		// The original path and version are kept for it.
		if dep.Replace != nil {
			if m.beside = strings.HasPrefix(dep.Replace.Path, "."); !m.beside {
				m.source, m.version = dep.Replace.Path, dep.Replace.Version
			}
		}
		modules = append(modules, m)
	}
	return modules
}

// folders returns the folders of all dependencies of the module in dir, keyed by import path.
func folders(dir string) (map[string]string, error) {
	cmd := exec.Command("go", "list", "-m", "-f", "{{.Path}}\t{{.Dir}}", "all")
	cmd.Dir, cmd.Stderr = dir, os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("listing the modules of %s: %w", dir, err)
	}
	found := map[string]string{}
	for line := range strings.Lines(string(out)) {
		path, folder, _ := strings.Cut(strings.TrimSpace(line), "\t")
		found[path] = folder
	}
	return found, nil
}

// licenceFile matches the names of files that must be distributed together with a module's code.
var licenceFile = regexp.MustCompile(`(?i)^(licen[sc]e|notice|copying)([.-].*)?$`)

// licences returns the modules' licence texts, each below the module's name.
func licences(modules []module, folder map[string]string) ([]byte, error) {
	var out bytes.Buffer
	for _, m := range modules {
		if m.beside {
			continue
		}
		entries, err := os.ReadDir(folder[m.path])
		if err != nil {
			return nil, fmt.Errorf("module %s: %w", m.path, err)
		}
		found := false
		for _, entry := range entries {
			if entry.IsDir() || !licenceFile.MatchString(entry.Name()) {
				continue
			}
			text, err := os.ReadFile(filepath.Join(folder[m.path], entry.Name()))
			if err != nil {
				return nil, err
			}
			found = true
			fmt.Fprintf(&out, "==== %s %s: %s ====\n\n%s\n", m.source, m.version, entry.Name(), bytes.TrimRight(text, "\n"))
			out.WriteByte('\n')
		}
		if !found {
			return nil, fmt.Errorf("module %s has no file with a licence", m.path)
		}
	}
	return out.Bytes(), nil
}
