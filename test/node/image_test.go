// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tidekeeper.dev/tidekeeper/test/framework"
)

// managerImage is the full name of the image that config/default runs.
const managerImage = "docker.io/library/tidekeeper:latest"

// recipe holds the parts of the Dockerfile that the test reproduces without Docker.
type recipe struct {
	// sources lists the files and folders that the Dockerfile copies.
	sources []string
	// build is the command that builds /tidekeeper.
	build string
	// user and entrypoint are the image's settings.
	user       string
	entrypoint []string
}

// continued matches a line continuation: a backslash at the end of a line.
var continued = regexp.MustCompile(`\\\n\s*`)

func readRecipe(t *testing.T) recipe {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(framework.Root(), "Dockerfile"))
	if err != nil {
		t.Fatal(err)
	}
	var r recipe
	for line := range strings.Lines(continued.ReplaceAllString(string(text), " ")) {
		instruction, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch instruction {
		case "COPY":
			if fields := strings.Fields(rest); !strings.HasPrefix(rest, "--from") {
				r.sources = append(r.sources, fields[:len(fields)-1]...)
			} else if rest != "--from=build /tidekeeper /tidekeeper" {
				t.Fatalf("the image has more than the program: COPY %s", rest)
			}
		case "RUN":
			r.build = rest
		case "USER":
			r.user = rest
		case "ENTRYPOINT":
			if err := json.Unmarshal([]byte(rest), &r.entrypoint); err != nil {
				t.Fatal(err)
			}
		}
	}
	return r
}

// program runs the recipe's build command in a directory that contains only the files that the
// Dockerfile copies, and returns the path of the binary.
func (r recipe) program(t *testing.T) string {
	t.Helper()
	sources, out := t.TempDir(), filepath.Join(t.TempDir(), "tidekeeper")
	for _, name := range r.sources {
		from, to := filepath.Join(framework.Root(), name), filepath.Join(sources, name)
		if info, err := os.Stat(from); err != nil {
			t.Fatal(err)
		} else if info.IsDir() {
			if err := os.CopyFS(to, os.DirFS(from)); err != nil {
				t.Fatal(err)
			}
			continue
		}
		text, err := os.ReadFile(from)
		if err == nil {
			err = os.WriteFile(to, text, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	command := exec.CommandContext(t.Context(), "sh", "-c", strings.ReplaceAll(r.build, "-o /tidekeeper", "-o "+out))
	command.Dir = sources
	command.Env = append(os.Environ(), "TARGETOS=linux", "TARGETARCH="+runtime.GOARCH, "VERSION=v0.0.0-test", "GOFLAGS=")
	if said, err := command.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", r.build, err, said)
	}
	return out
}

// archives returns the content of each image archive in the sandbox as a map from file names to
// file content.
func (n *node) archives(t *testing.T) []map[string][]byte {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(n.Dir, "images", "*.tar"))
	if err != nil || len(names) == 0 {
		t.Fatalf("images: %v, %v", names, err)
	}
	var all []map[string][]byte
	for _, name := range names {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, untar(t, data))
	}
	return all
}

// untar returns the files in an archive, keyed by name.
func untar(t *testing.T, data []byte) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	for archive := tar.NewReader(bytes.NewReader(data)); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err == nil {
			files[header.Name], err = io.ReadAll(archive)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// image checks that building the Dockerfile's image twice gives identical images, which contain a
// single program and do not run as root.
func (n *node) image(t *testing.T) {
	r := readRecipe(t)
	first, second := r.program(t), r.program(t)
	n.Sandbox(t, "nodes", "load-image", managerImage, second)
	again := n.digest(t)
	n.Sandbox(t, "nodes", "load-image", managerImage, first)
	digest := n.digest(t)
	if digest == "" || digest != again {
		t.Errorf("two builds give the images %q and %q", digest, again)
	}

	for _, files := range n.archives(t) {
		manifest, ok := files["blobs/sha256/"+strings.TrimPrefix(digest, "sha256:")]
		if !ok {
			continue
		}
		var image struct {
			Config struct{ Digest string }
			Layers []struct{ Digest string }
		}
		var config struct {
			Config struct {
				User       string
				Entrypoint []string
			}
		}
		blob := func(digest string) []byte { return files["blobs/sha256/"+strings.TrimPrefix(digest, "sha256:")] }
		if err := json.Unmarshal(manifest, &image); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(blob(image.Config.Digest), &config); err != nil {
			t.Fatal(err)
		}
		if user, _, _ := strings.Cut(config.Config.User, ":"); config.Config.User != r.user || user == "0" || user == "root" || user == "" {
			t.Errorf("it runs as %q, and the recipe says %q", config.Config.User, r.user)
		}
		if d := cmp.Diff(r.entrypoint, config.Config.Entrypoint); d != "" {
			t.Errorf("the entry point: -Dockerfile +image:\n%s", d)
		}
		var inside []string
		for _, layer := range image.Layers {
			for name := range untar(t, blob(layer.Digest)) {
				inside = append(inside, name)
			}
		}
		if !slices.Equal(inside, []string{"tidekeeper"}) {
			t.Errorf("in the image are %q, want one program", inside)
		}
		return
	}
	t.Errorf("no archive has the image %s", digest)
}

// digest returns the digest of the manager's image, as reported by containerd.
func (n *node) digest(t *testing.T) string {
	t.Helper()
	for line := range strings.Lines(n.ctr(t, "images", "list")) {
		if fields := strings.Fields(line); len(fields) > 2 && fields[0] == managerImage {
			return fields[2]
		}
	}
	return ""
}
