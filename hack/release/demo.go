// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"debug/buildinfo"
	"fmt"
	"os"
	"path/filepath"
	"slices"
)

// demoArchive is the name of the archive with the demo. It contains sandbox-demo, which 'sandbox
// demo' runs, and the programs that sandbox-demo starts.
const demoArchive = "tidekeeper-demo"

// part is a program in an archive. build is the folder of its builds, bin is the name of its
// binary, and module is the folder of its Go module.
type part struct{ build, bin, module string }

// partsOf returns the programs in the archive of the given program. That program itself is first.
func partsOf(program, os string) []part {
	own := part{program, executable(program, os), "."}
	kit := part{"sandbox", "sandbox", "sandbox"}
	switch program {
	case "sandbox":
		return []part{kit}
	case demoArchive:
		return []part{{demoArchive, "sandbox-demo", "hack/demo"}, kit, {"tidekeeper", "tidekeeper", "."}, {"kubectl-tide", "kubectl-tide", "."}}
	}
	return []part{own}
}

// programs reads the programs of an archive. It returns them as files, together with their build
// information and the licences of all modules that are linked into any of them.
func (r *release) programs(parts []part, p platform) (files []file, infos []*buildinfo.BuildInfo, thirdParty []byte, err error) {
	var dirs []string
	linked := map[string][]module{}
	for _, part := range parts {
		path := filepath.Join(r.built, part.build, p.OS, p.Architecture, part.bin)
		content, err := os.ReadFile(path)
		if err != nil {
			return nil, nil, nil, err
		}
		of, err := buildinfo.Read(bytes.NewReader(content))
		if err != nil {
			return nil, nil, nil, err
		}
		if err := builtForRelease(of); err != nil {
			return nil, nil, nil, fmt.Errorf("%s: %w", part.bin, err)
		}
		infos = append(infos, of)
		files = append(files, file{name: part.bin, mode: 0o755, content: content})
		if !slices.Contains(dirs, part.module) {
			dirs = append(dirs, part.module)
		}
		for _, m := range modulesOf(of) {
			if !slices.Contains(linked[part.module], m) {
				linked[part.module] = append(linked[part.module], m)
			}
		}
	}
	for _, dir := range dirs {
		folder, err := folders(dir)
		if err != nil {
			return nil, nil, nil, err
		}
		texts, err := licences(linked[dir], folder)
		if err != nil {
			return nil, nil, nil, err
		}
		thirdParty = append(thirdParty, texts...)
	}
	return files, infos, thirdParty, nil
}

// settings maps the settings of a build that decide the bytes of a program to their values in a
// release. "" stands for none.
var settings = map[string]string{
	"-trimpath": "true", "-tags": "", "-race": "", "CGO_ENABLED": "0", "GOAMD64": "v1", "GOARM64": "v8.0", "GOEXPERIMENT": "", "GOFIPS140": "",
	"vcs": "", "vcs.revision": "", "vcs.time": "", "vcs.modified": "",
}

// builtForRelease returns an error if a program's build had a setting by which another machine
// would build other bytes.
func builtForRelease(info *buildinfo.BuildInfo) error {
	for _, setting := range info.Settings {
		if want, ok := settings[setting.Key]; ok && setting.Value != want {
			return fmt.Errorf("it was built with %s=%s, want %q: other machines would build other bytes", setting.Key, setting.Value, want)
		}
	}
	return nil
}
