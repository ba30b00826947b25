// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// TestCompilesOnMacs checks that the package compiles for macOS, because the tests of other modules
// that import it are also compiled there.
func TestCompilesOnMacs(t *testing.T) {
	build := exec.Command("go", "build", "./...")
	build.Env = append(os.Environ(), "GOOS=darwin", "GOARCH=arm64", "CGO_ENABLED=0", "GOWORK=off")
	if out, err := build.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestOnLinux checks that starting a sandbox on another system returns an error that names Linux.
func TestOnLinux(t *testing.T) {
	if err := supports("linux"); err != nil {
		t.Error(err)
	}
	if err := supports("darwin"); !errors.Is(err, errors.ErrUnsupported) || !strings.Contains(err.Error(), "run on Linux, and this is darwin") {
		t.Errorf("on a Mac: %v", err)
	}
}
