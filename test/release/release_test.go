// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package release

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"debug/buildinfo"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// version and target identify the release that make build-release builds.
const (
	version = "v0.1.0"
	target  = "-" + version + "-linux-"
)

var programs = []string{"kubectl-tide", "tidekeeper", "sandbox"}

// folder returns the release folder. It skips the test if RELEASE is not set.
func folder(t *testing.T) string {
	t.Helper()
	dir := os.Getenv("RELEASE")
	if dir == "" {
		t.Skip("RELEASE names no folder of a release: run make test-release")
	}
	return dir
}

// unpack unpacks a program's release archive for this machine, and returns the folder with its
// files.
func unpack(t *testing.T, program string) string {
	t.Helper()
	return unpackFor(t, program, runtime.GOARCH)
}

func unpackFor(t *testing.T, program, architecture string) string {
	t.Helper()
	in, err := os.Open(filepath.Join(folder(t), program+target+architecture+".tar.gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	plain, err := gzip.NewReader(in)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for r := tar.NewReader(plain); ; {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			return dir
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, filepath.Base(header.Name)), content, header.FileInfo().Mode()); err != nil {
			t.Fatal(err)
		}
	}
}

// run runs a command in `dir`, and returns its output and whether it succeeded.
func run(t *testing.T, dir, name string, args ...string) (string, bool) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	return string(out), err == nil
}

func TestProgramsRunFromTheirArchives(t *testing.T) {
	for _, program := range programs {
		t.Run(program, func(t *testing.T) {
			t.Parallel()
			dir := unpack(t, program)
			out, ok := run(t, dir, filepath.Join(dir, program), "--version")
			if !ok {
				t.Fatalf("--version: %s", out)
			}
			if !strings.Contains(out, version) {
				t.Errorf("--version prints %q, want %s", out, version)
			}
			for _, name := range []string{"LICENSE", "README.md", "THIRD-PARTY-LICENSES"} {
				if text, err := os.ReadFile(filepath.Join(dir, name)); err != nil || len(text) == 0 {
					t.Errorf("%s has %d bytes, %v", name, len(text), err)
				}
			}
		})
	}
}

// emulator returns the path of an emulator that runs arm64 programs on this machine.
func emulator(t *testing.T) string {
	t.Helper()
	path, err := exec.LookPath("qemu-aarch64")
	if err != nil {
		t.Skip("programs for arm64 cannot be run: apt-get install qemu-user")
	}
	return path
}

func TestProgramsForArm64Run(t *testing.T) {
	t.Parallel()
	qemu := emulator(t)
	for _, program := range []string{"kubectl-tide", "tidekeeper"} {
		dir := unpackFor(t, program, "arm64")
		if out, ok := run(t, dir, qemu, filepath.Join(dir, program), "--version"); !ok || !strings.Contains(out, version) {
			t.Errorf("%s --version prints %q, want %s", program, out, version)
		}
	}
}

func TestPluginCompletes(t *testing.T) {
	t.Parallel()
	dir := unpack(t, "kubectl-tide")
	out, ok := run(t, dir, filepath.Join(dir, "kubectl-tide"), "__complete", "res")
	if !ok || !strings.Contains(out, "restarts") {
		t.Errorf("completion of res is %s", out)
	}
}

// TestListsHaveEveryModuleAndNoOther compares the list of modules with the build information of all
// programs in the archive.
func TestListsHaveEveryModuleAndNoOther(t *testing.T) {
	for _, program := range append(programs, "tidekeeper-demo") {
		t.Run(program, func(t *testing.T) {
			t.Parallel()
			want := linkedInto(t, unpack(t, program))
			data, err := os.ReadFile(filepath.Join(folder(t), program+target+runtime.GOARCH+".cdx.json"))
			if err != nil {
				t.Fatal(err)
			}
			var list struct {
				Components []struct{ Name, Version string }
			}
			if err := json.Unmarshal(data, &list); err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, c := range list.Components {
				got = append(got, c.Name+" "+c.Version)
			}
			slices.Sort(got)
			if !slices.Equal(got, want) {
				t.Errorf("the list has\n%s\nand the program\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
		})
	}
}

// linkedInto returns the modules that are linked into the programs in a folder, sorted and without
// duplicates.
func linkedInto(t *testing.T, dir string) (modules []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		info, err := buildinfo.ReadFile(filepath.Join(dir, entry.Name()))
		if err != nil {
			continue // It is a text.
		}
		modules = append(modules, "stdlib "+strings.TrimPrefix(info.GoVersion, "go"))
		for _, dep := range info.Deps {
			if dep.Replace != nil && !strings.HasPrefix(dep.Replace.Path, ".") {
				dep = dep.Replace
			}
			modules = append(modules, dep.Path+" "+dep.Version)
		}
	}
	slices.Sort(modules)
	return slices.Compact(modules)
}

// TestNothingNamesTheMachineThatBuiltIt checks that no file in an archive contains the path of the
// source tree, of Go's module cache or of Go itself on the machine that built it.
func TestNothingNamesTheMachineThatBuiltIt(t *testing.T) {
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	out, ok := run(t, "", "go", "env", "GOMODCACHE", "GOROOT")
	paths := append(strings.Fields(out), root)
	if !ok || len(paths) != 3 {
		t.Fatal(out)
	}
	for _, program := range append(programs, "tidekeeper-demo") {
		t.Run(program, func(t *testing.T) {
			t.Parallel()
			dir := unpack(t, program)
			entries, err := os.ReadDir(dir)
			if err != nil {
				t.Fatal(err)
			}
			for _, entry := range entries {
				content, err := os.ReadFile(filepath.Join(dir, entry.Name()))
				if err != nil {
					t.Fatal(err)
				}
				for _, path := range paths {
					if at := bytes.Index(content, []byte(path+"/")); at >= 0 {
						t.Errorf("%s has %q", entry.Name(), content[at:min(at+120, len(content))])
					}
				}
			}
		})
	}
}

// TestTamperedFileIsRefused runs the commands of docs/tasks/verify-a-release.md with the public key
// next to the release folder. They must accept the original files, and reject a file with a changed
// byte.
func TestTamperedFileIsRefused(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("openssl"); err != nil {
		t.Skip("openssl is not installed")
	}
	release := folder(t)
	dir := t.TempDir()
	const chart = "tidekeeper-0.1.0.tgz"
	files := map[string][]byte{}
	for _, name := range []string{"checksums.txt", "checksums.txt.sig", chart} {
		var err error
		if files[name], err = os.ReadFile(filepath.Join(release, name)); err != nil {
			t.Fatal(err)
		}
	}
	signature, err := base64.StdEncoding.DecodeString(strings.TrimSpace(string(files["checksums.txt.sig"])))
	if err != nil {
		t.Fatal(err)
	}
	verify := func() (string, bool) {
		for name, content := range map[string][]byte{"checksums.sig": signature, "checksums.txt": files["checksums.txt"], chart: files[chart]} {
			if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if out, ok := run(t, dir, "openssl", "dgst", "-sha256", "-verify", release+".pub", "-signature", "checksums.sig", "checksums.txt"); !ok {
			return out, false
		}
		return run(t, dir, "sha256sum", "--check", "--ignore-missing", "checksums.txt")
	}
	if out, ok := verify(); !ok {
		t.Fatalf("what was released is refused: %s", out)
	}
	for _, name := range []string{chart, "checksums.txt"} {
		files[name][10] ^= 1
		if out, ok := verify(); ok {
			t.Errorf("%s with another byte is accepted: %s", name, out)
		}
		files[name][10] ^= 1
	}
}

func TestChartIsPinnedToTheImageOfTheRelease(t *testing.T) {
	t.Parallel()
	release := folder(t)
	out, ok := run(t, release, os.Getenv("HELM_BIN"), "template", "x", "tidekeeper-0.1.0.tgz")
	if !ok {
		t.Fatal(out)
	}
	index := imageIndex(t, filepath.Join(release, "tidekeeper-"+version+"-image.tar"))
	if !strings.Contains(out, `image: "tidekeeper@`+index+`"`) {
		t.Errorf("the chart does not install the image %s", index)
	}
}

// imageIndex returns the digest in the index.json of an OCI image layout.
func imageIndex(t *testing.T, path string) string {
	t.Helper()
	in, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	for r := tar.NewReader(in); ; {
		header, err := r.Next()
		if err != nil {
			t.Fatalf("looking for index.json: %v", err)
		}
		if header.Name != "index.json" {
			continue
		}
		var index struct {
			Manifests []struct{ Digest string }
		}
		if err := json.NewDecoder(r).Decode(&index); err != nil {
			t.Fatal(err)
		}
		return index.Manifests[0].Digest
	}
}
