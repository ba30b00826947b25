// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"time"

	gomodule "golang.org/x/mod/module"
	"golang.org/x/mod/zip"
)

// modulePath is the path of the module that contains the manager and the plugin. go install accepts
// the module because its go.mod has no replace directives.
const modulePath = "tidekeeper.dev/tidekeeper"

// proxyOf returns an archive with the module at the given commit, in the file layout of a module
// proxy. The unpacked folder can be used as GOPROXY=file://….
func proxyOf(root, commit, version string, at time.Time) ([]byte, error) {
	of := gomodule.Version{Path: modulePath, Version: version}
	committed, err := committedFiles(root, commit)
	if err != nil {
		return nil, err
	}
	var source bytes.Buffer
	// zip.Create omits the modules in subfolders.
	if err := zip.Create(&source, of, committed); err != nil {
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

// committedFile is a file in a commit.
type committedFile struct {
	header  *tar.Header
	content []byte
}

func (f committedFile) Path() string                { return f.header.Name }
func (f committedFile) Lstat() (fs.FileInfo, error) { return f.header.FileInfo(), nil }
func (f committedFile) Open() (io.ReadCloser, error) {
	return io.NopCloser(bytes.NewReader(f.content)), nil
}

// committedFiles returns a commit's files, regardless of the state of the checkout.
func committedFiles(root, commit string) ([]zip.File, error) {
	command := exec.Command("git", "-c", "core.autocrlf=input", "-c", "core.eol=lf", "archive", "--format=tar", commit)
	command.Dir, command.Stderr = root, os.Stderr
	data, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("the files of commit %s: %w", commit, err)
	}
	var files []zip.File
	for r := tar.NewReader(bytes.NewReader(data)); ; {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			return files, nil
		}
		if err != nil {
			return nil, err
		}
		if header.Typeflag != tar.TypeReg {
			continue
		}
		content, err := io.ReadAll(r)
		if err != nil {
			return nil, err
		}
		files = append(files, committedFile{header, content})
	}
}
