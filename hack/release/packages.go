// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"crypto/md5" //nolint:gosec // required by the deb format
	"encoding/hex"
	"fmt"
	"path"
	"strings"
	"time"

	"github.com/blakesmith/ar"
	"github.com/google/rpmpack"
)

// Metadata of the deb and rpm packages.
const (
	packageName = "kubectl-tide"
	summary     = "Show node pools and scheduled restarts of Tidekeeper"
	maintainer  = "The Tidekeeper Authors <tidekeeper@tidekeeper.dev>"
	homepage    = "https://tidekeeper.dev"
)

// installed returns a package's files with their installation paths, without a leading slash.
// Programs are installed in usr/bin, where kubectl finds the plugin by its name, and documents in
// usr/share/doc.
func installed(files []file) []file {
	var at []file
	for _, f := range files {
		folder := "usr/share/doc/" + packageName
		if f.mode == 0o755 {
			folder = "usr/bin"
		}
		at = append(at, file{name: path.Join(folder, f.name), mode: f.mode, content: f.content})
	}
	return at
}

// debOf returns the plugin's deb package.
func debOf(files []file, version, architecture string, at time.Time) ([]byte, error) {
	data := installed(files)
	var sums strings.Builder
	size := 0
	for _, f := range data {
		sum := md5.Sum(f.content) //nolint:gosec // required by the deb format
		fmt.Fprintf(&sums, "%s  %s\n", hex.EncodeToString(sum[:]), f.name)
		size += len(f.content)
	}
	control := fmt.Sprintf("Package: %s\nVersion: %s\nArchitecture: %s\nMaintainer: %s\nInstalled-Size: %d\nSection: admin\nPriority: optional\nHomepage: %s\nDescription: %s\n",
		packageName, debVersion(version), architecture, maintainer, (size+1023)/1024, homepage, summary)
	meta, err := archive([]file{{name: "./control", mode: 0o644, content: []byte(control)}, {name: "./md5sums", mode: 0o644, content: []byte(sums.String())}}, at)
	if err != nil {
		return nil, err
	}
	content, err := archive(withFolders(data), at)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	w := ar.NewWriter(&out)
	if err := w.WriteGlobalHeader(); err != nil {
		return nil, err
	}
	for _, f := range []file{{name: "debian-binary", content: []byte("2.0\n")}, {name: "control.tar.gz", content: meta}, {name: "data.tar.gz", content: content}} {
		if err := w.WriteHeader(&ar.Header{Name: f.name, ModTime: at, Mode: 0o100644, Size: int64(len(f.content))}); err != nil {
			return nil, err
		}
		if _, err := w.Write(f.content); err != nil {
			return nil, err
		}
	}
	return out.Bytes(), nil
}

// withFolders adds an entry for each folder before the files in it, because dpkg requires them.
func withFolders(files []file) []file {
	var all []file
	known := map[string]bool{}
	for _, f := range files {
		parts := strings.Split(f.name, "/")
		for i := 1; i < len(parts); i++ {
			folder := "./" + strings.Join(parts[:i], "/") + "/"
			if !known[folder] {
				known[folder] = true
				all = append(all, file{name: folder, mode: 0o755})
			}
		}
		f.name = "./" + f.name
		all = append(all, f)
	}
	return all
}

// debVersion converts a version to the form that dpkg and rpm sort correctly: 0.1.0~rc.1 is older
// than 0.1.0.
func debVersion(version string) string {
	return strings.Replace(strings.TrimPrefix(version, "v"), "-", "~", 1)
}

// rpmOf returns the plugin's rpm package.
func rpmOf(files []file, version, architecture string, at time.Time) ([]byte, error) {
	name, ok := map[string]string{"amd64": "x86_64", "arm64": "aarch64"}[architecture]
	if !ok {
		return nil, fmt.Errorf("RPM's name of the architecture %s is not known", architecture)
	}
	r, err := rpmpack.NewRPM(rpmpack.RPMMetaData{
		Name: packageName, Summary: summary, Description: summary, Version: debVersion(version), Release: "1", Arch: name, OS: "linux",
		Vendor: "The Tidekeeper Authors", URL: homepage, Packager: maintainer, Licence: "Apache-2.0", Compressor: "gzip", BuildTime: at, BuildHost: "localhost",
	})
	if err != nil {
		return nil, err
	}
	for _, f := range installed(files) {
		r.AddFile(rpmpack.RPMFile{Name: "/" + f.name, Body: f.content, Mode: uint(f.mode) | 0o100000, Owner: "root", Group: "root", MTime: uint32(at.Unix())})
	}
	var out bytes.Buffer
	err = r.Write(&out)
	return out.Bytes(), err
}
