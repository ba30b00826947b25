// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Command write generates versions/1.34.mod and versions/1.34.sum for a Kubernetes release such as
// v1.34.4. The .mod file requires all dependencies of the release in the versions with which the
// release was published. Generating the files needs network access. With --check, the command
// verifies the versions in the existing files.
package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

const (
	module     = "tidekeeper.dev/tidekeeper/sandbox/kubernetes"
	kubernetes = "k8s.io/kubernetes"
)

// requirement is a require directive of a go.mod file.
type requirement struct {
	Path, Version string
}

// file holds the fields of the `go mod edit -json` output that this command uses.
type file struct {
	Go      string
	Require []requirement
	Replace []struct{ Old, New requirement }
}

func main() {
	check := flag.Bool("check", false, "only look whether the files in versions are right")
	flag.Parse()
	work := write
	releases := flag.Args()
	if *check {
		work = verify
		releases = written()
	}
	if len(releases) == 0 {
		fail(fmt.Errorf("name releases of Kubernetes, such as v1.34.4"))
	}
	for _, release := range releases {
		if err := work(release); err != nil {
			fail(err)
		}
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "error:", err)
	os.Exit(1)
}

var releaseName = regexp.MustCompile(`^v(1\.[0-9]+)\.([0-9]+)$`)

// write writes the .mod and .sum files of a Kubernetes release.
func write(release string) error {
	names := releaseName.FindStringSubmatch(release)
	if names == nil {
		return fmt.Errorf("%q: want a release like v1.34.4", release)
	}
	published, err := published(release)
	if err != nil {
		return err
	}
	var text strings.Builder
	fmt.Fprintf(&text, "// Written by ./write %s.\nmodule %s\n\ngo %s\n\nrequire (\n\t%s %s\n", release, module, published.Go, kubernetes, release)
	for _, r := range published.Require {
		fmt.Fprintf(&text, "\t%s %s\n", r.Path, r.Version)
	}
	text.WriteString(")\n")
	path := filepath.Join("versions", names[1]+".mod")
	if err := os.WriteFile(path, []byte(text.String()), 0o644); err != nil {
		return err
	}
	_, err = output("go", "mod", "tidy", "-modfile="+path)
	return err
}

// written returns the Kubernetes releases that the .mod files in the folder versions require, such
// as v1.34.4.
func written() []string {
	paths, _ := filepath.Glob(filepath.Join("versions", "*.mod"))
	var releases []string
	for _, path := range paths {
		mod, err := read(path)
		if err != nil {
			fail(err)
		}
		i := slices.IndexFunc(mod.Require, func(r requirement) bool { return r.Path == kubernetes })
		if i < 0 || !strings.HasPrefix(mod.Require[i].Version, "v"+strings.TrimSuffix(filepath.Base(path), "mod")) {
			fail(fmt.Errorf("%s does not require %s of that version", path, kubernetes))
		}
		releases = append(releases, mod.Require[i].Version)
	}
	return releases
}

// verify returns an error if a release's .mod file requires a module in another version than the
// release does.
func verify(release string) error {
	published, err := published(release)
	if err != nil {
		return err
	}
	path := filepath.Join("versions", releaseName.FindStringSubmatch(release)[1]+".mod")
	mod, err := read(path)
	if err != nil {
		return err
	}
	for _, r := range mod.Require {
		if r.Path != kubernetes && !slices.Contains(published.Require, r) {
			return fmt.Errorf("%s requires %s %s, unlike Kubernetes %s: go run ./write %s", path, r.Path, r.Version, release, release)
		}
	}
	return nil
}

// published returns the go.mod file of a Kubernetes release. Modules from the staging folder get
// the versions under which they were published: v0.34.4 for v1.34.4.
func published(release string) (file, error) {
	out, err := output("go", "list", "-m", "-f={{.GoMod}}", kubernetes+"@"+release)
	if err != nil {
		return file{}, err
	}
	mod, err := read(strings.TrimSpace(string(out)))
	if err != nil {
		return file{}, err
	}
	local := map[string]bool{}
	for _, r := range mod.Replace {
		local[r.Old.Path] = strings.HasPrefix(r.New.Path, "./")
	}
	for i, r := range mod.Require {
		if local[r.Path] {
			mod.Require[i].Version = "v0" + strings.TrimPrefix(release, "v1")
		}
	}
	return mod, nil
}

// read parses the go.mod file at path.
func read(path string) (file, error) {
	var mod file
	out, err := output("go", "mod", "edit", "-json", path)
	if err != nil {
		return mod, err
	}
	if err := json.Unmarshal(out, &mod); err != nil {
		return mod, fmt.Errorf("%s: %w", path, err)
	}
	return mod, nil
}

// output runs a command and returns its standard output. If the command fails, the error contains
// its standard error.
func output(name string, args ...string) ([]byte, error) {
	var out, problems bytes.Buffer
	command := exec.Command(name, args...)
	command.Stdout, command.Stderr = &out, &problems
	if err := command.Run(); err != nil {
		return nil, fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, problems.String())
	}
	return out.Bytes(), nil
}
