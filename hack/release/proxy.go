// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path"
	"time"

	gomodule "golang.org/x/mod/module"
	"golang.org/x/mod/zip"
)

// modulePath is the module of the manager and the plugin, which replaces none, so that Go installs it.
const modulePath = "tidekeeper.dev/tidekeeper"

// proxyOf returns the module at a commit as an archive of the files of a module proxy: unpacked, it is
// what GOPROXY=file://… reads.
func proxyOf(root, commit, version string, at time.Time) ([]byte, error) {
	of := gomodule.Version{Path: modulePath, Version: version}
	var source bytes.Buffer
	if err := zip.CreateFromVCS(&source, of, root, commit, ""); err != nil {
		return nil, fmt.Errorf("the module: %w", err)
	}
	info, err := json.Marshal(map[string]any{"Version": version, "Time": at})
	if err != nil {
		return nil, err
	}
	gomod, err := os.ReadFile(path.Join(root, "go.mod"))
	if err != nil {
		return nil, err
	}
	var files []file
	for _, f := range []file{
		{name: "list", content: []byte(version + "\n")},
		{name: version + ".info", content: info},
		{name: version + ".mod", content: gomod},
		{name: version + ".zip", content: source.Bytes()},
	} {
		f.name, f.mode = path.Join(modulePath, "@v", f.name), 0o644
		files = append(files, f)
	}
	return archive(files, at)
}
