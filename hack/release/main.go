// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"debug/buildinfo"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// release is what is packed.
type release struct {
	version, built, image, url string
	at                         time.Time
	// files are the files of the folder, by name.
	files map[string][]byte
	// plugins are the archives of the plugin.
	plugins []packed
	// managers are the binaries for the image, in the order of platforms.
	managers  map[platform][]byte
	platforms []platform
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func run() error {
	r := &release{files: map[string][]byte{}, managers: map[platform][]byte{}}
	var seconds int64
	var out, key string
	flag.StringVar(&r.version, "version", "", "the version, such as v0.1.0")
	flag.StringVar(&r.built, "built", "", "the folder with PROGRAM/OS/ARCHITECTURE/PROGRAM")
	flag.StringVar(&r.image, "image", "", "the repository of the published image, for the chart")
	flag.StringVar(&r.url, "url", "", "the address at which the files are published")
	flag.Int64Var(&seconds, "time", 0, "the time of all files, in seconds since 1970")
	flag.StringVar(&out, "out", "", "the folder to write, which is replaced")
	flag.StringVar(&key, "key", "", "a private key of ECDSA in PEM (PKCS #8) that signs the checksums")
	flag.Parse()
	if r.version == "" || r.built == "" || out == "" || flag.NArg() == 0 {
		return errors.New("want --version, --built, --out and some PROGRAM/OS/ARCHITECTURE")
	}
	r.at = time.Unix(seconds, 0).UTC()
	if err := r.pack(flag.Args()); err != nil {
		return err
	}
	return r.write(out, key)
}

// pack fills the folder.
func (r *release) pack(builds []string) error {
	for _, build := range builds {
		if err := r.program(build); err != nil {
			return fmt.Errorf("%s: %w", build, err)
		}
	}
	if len(r.plugins) > 0 {
		manifest, err := krewOf(r.version, r.url, r.plugins)
		if err != nil {
			return err
		}
		r.files["tide.yaml"] = manifest
	}
	if len(r.platforms) > 0 {
		image, digest, err := imageOf(r.managers, r.platforms, r.version, r.at)
		if err != nil {
			return err
		}
		r.files["tidekeeper-"+r.version+"-image.tar"] = image
		r.files["tidekeeper-"+strings.TrimPrefix(r.version, "v")+".tgz"], err = chartOf(os.DirFS("charts/tidekeeper"), r.version, r.image, digest, r.at)
		if err != nil {
			return err
		}
	}
	for name, changelog := range map[string]string{"NOTES.md": "CHANGELOG.md", "NOTES-sandbox.md": "sandbox/CHANGELOG.md"} {
		text, err := os.ReadFile(changelog)
		if err != nil {
			return err
		}
		notes, err := notesOf(string(text), r.version)
		if err != nil {
			return err
		}
		r.files[name] = []byte(notes)
	}
	return nil
}

// program adds the archive of a program for a platform, and the list of its modules.
func (r *release) program(build string) error {
	parts := strings.Split(build, "/")
	if len(parts) != 3 {
		return errors.New("want PROGRAM/OS/ARCHITECTURE")
	}
	program, p := parts[0], platform{OS: parts[1], Architecture: parts[2]}
	source := "."
	if program == "sandbox" {
		source = "sandbox"
	}
	bin := executable(program, p.OS)
	path := filepath.Join(r.built, filepath.FromSlash(build), bin)
	info, err := buildinfo.ReadFile(path)
	if err != nil {
		return err
	}
	folder, err := folders(source)
	if err != nil {
		return err
	}
	thirdParty, err := licences(modulesOf(info), folder)
	if err != nil {
		return err
	}
	files := []file{{name: bin, mode: 0o755}, {name: "LICENSE", mode: 0o644}, {name: "README.md", mode: 0o644}}
	for i, from := range []string{path, filepath.Join(source, "LICENSE"), filepath.Join(source, "README.md")} {
		if files[i].content, err = os.ReadFile(from); err != nil {
			return err
		}
	}
	data, err := archive(append(files, file{name: "THIRD-PARTY-LICENSES", mode: 0o644, content: thirdParty}), r.at)
	if err != nil {
		return err
	}
	base := strings.Join([]string{program, r.version, p.OS, p.Architecture}, "-")
	r.files[base+".tar.gz"] = data
	if r.files[base+".cdx.json"], err = sbomOf(program, r.version, info); err != nil {
		return err
	}
	switch program {
	case "kubectl-tide":
		r.plugins = append(r.plugins, packed{platform: p, name: base + ".tar.gz", sha256: sha(data)})
	case "tidekeeper":
		r.platforms = append(r.platforms, p)
		r.managers[p] = files[0].content
	}
	return nil
}

// write writes the folder, with the checksums of all files in it.
func (r *release) write(out, key string) error {
	sums := checksums(r.files)
	if key != "" {
		private, err := os.ReadFile(key)
		if err != nil {
			return err
		}
		if r.files["checksums.txt.sig"], err = sign(sums, private); err != nil {
			return err
		}
	}
	r.files["checksums.txt"] = sums
	if err := clearFolder(out); err != nil {
		return err
	}
	if err := os.MkdirAll(out, 0o755); err != nil {
		return err
	}
	for name, content := range r.files {
		if err := os.WriteFile(filepath.Join(out, name), content, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// clearFolder removes a folder that an earlier run wrote, and no other.
func clearFolder(out string) error {
	entries, err := os.ReadDir(out)
	if errors.Is(err, os.ErrNotExist) || err == nil && len(entries) == 0 {
		return nil
	}
	if err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join(out, "checksums.txt")); err != nil {
		return fmt.Errorf("%s has files, but no release: name an empty folder", out)
	}
	return os.RemoveAll(out)
}
