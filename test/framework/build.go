// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"testing"
)

// Build builds a program that only tests need, and returns its path. It uses the settings of make
// build, so that nearly all packages are in the build cache. `pkg` is relative to the repository's
// root, for instance ./test/x; `flags` are flags of go build.
func Build(t testing.TB, pkg string, flags ...string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), path.Base(pkg))
	buildAs(t, file, pkg, flags...)
	return file
}

// buildAs is [Build], but writes the program to the given file.
func buildAs(t testing.TB, file, pkg string, flags ...string) {
	t.Helper()
	build := exec.CommandContext(t.Context(), "go", append(append([]string{"build", "-trimpath", "-o", file}, flags...), ".")...)
	// go build must run in the package's module.
	build.Dir = filepath.Join(Root(), filepath.FromSlash(pkg))
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

// UseRaceBuilds makes a package's tests run the manager and the proxy that TIDEKEEPER_RACE_BIN and
// PROXY_RACE_BIN name, which are built with the race detector. Call it in TestMain, before [Main].
func UseRaceBuilds() {
	for variable, race := range map[string]string{"TIDEKEEPER_BIN": "TIDEKEEPER_RACE_BIN", "PROXY_BIN": "PROXY_RACE_BIN"} {
		if path := os.Getenv(race); path != "" {
			if err := os.Setenv(variable, path); err != nil {
				panic(err)
			}
		}
	}
}
