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

// Build builds a program that only tests need, and returns its path. It uses the
// settings of make build, so that nearly all packages are in the build cache. The
// package is relative to the root of the repository, for instance ./test/x; flags are
// flags of go build.
func Build(t testing.TB, pkg string, flags ...string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), path.Base(pkg))
	buildAs(t, file, pkg, flags...)
	return file
}

// buildAs is Build with the path of the result.
func buildAs(t testing.TB, file, pkg string, flags ...string) {
	t.Helper()
	build := exec.CommandContext(t.Context(), "go", append(append([]string{"build", "-trimpath", "-o", file}, flags...), ".")...)
	// go build must run in the module of the package.
	build.Dir = filepath.Join(Root(), filepath.FromSlash(pkg))
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

// UseRaceBuilds lets the tests of a package run the manager and the proxy that
// TIDEKEEPER_RACE_BIN and PROXY_RACE_BIN name, which are built with the race
// detector. It is for TestMain, before [Main].
func UseRaceBuilds() {
	for variable, race := range map[string]string{"TIDEKEEPER_BIN": "TIDEKEEPER_RACE_BIN", "PROXY_BIN": "PROXY_RACE_BIN"} {
		if path := os.Getenv(race); path != "" {
			if err := os.Setenv(variable, path); err != nil {
				panic(err)
			}
		}
	}
}
