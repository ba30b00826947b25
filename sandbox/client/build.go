// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strings"
	"syscall"
	"time"
)

// Environment variables that control how the sandbox program is built if it is not already
// installed.
const (
	// SourceVariable names the root of a checkout of the sandbox module from which the program is
	// built. If it is unset, the module is downloaded.
	SourceVariable = "SANDBOX_SOURCE"
	// BuildVariable disables the build if its value is "no".
	BuildVariable = "SANDBOX_BUILD"
)

// sandboxModule is the path of the sandbox program's module; clientModule is the path of this
// package's module.
const (
	sandboxModule = "tidekeeper.dev/tidekeeper/sandbox"
	clientModule  = sandboxModule + "/client"
)

// builder compiles the sandbox program with the go command.
type builder struct {
	// cache is the directory for built programs.
	cache string
	// source is the root of a checkout. If it is empty, version is the module version to download.
	source, version string
	// progress receives a line for each build step.
	progress io.Writer
}

// build compiles the sandbox program into the user's cache directory, and returns the program's
// path. A program of a released version is compiled only once.
func build(ctx context.Context) (string, error) {
	if os.Getenv(BuildVariable) == "no" {
		return "", fmt.Errorf("there is no program sandbox in the PATH, %s names none, and %s=no: build it, or let it be built", BinaryVariable, BuildVariable)
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	b := builder{cache: filepath.Join(cache, "tidekeeper-sandbox"), source: os.Getenv(SourceVariable), version: ownVersion(), progress: os.Stderr}
	return b.build(ctx)
}

// ownVersion returns the version of this module that is linked into the running program, or "" if
// the module was not released. The sandbox module is released with the same version.
func ownVersion() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	for _, module := range info.Deps {
		if module.Path == clientModule && module.Replace == nil && module.Version != "v0.0.0" {
			return module.Version
		}
	}
	return ""
}

func (b builder) build(ctx context.Context) (string, error) {
	if b.source == "" && b.version == "" {
		return "", fmt.Errorf("there is no program sandbox in the PATH, and its version is not known, so it cannot be built: name a program by %s, or the folder sandbox of a checkout by %s", BinaryVariable, SourceVariable)
	}
	dir := filepath.Join(b.cache, "source")
	if b.source == "" {
		dir = filepath.Join(b.cache, b.version)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	unlock, err := lock(dir)
	if err != nil {
		return "", err
	}
	defer unlock()
	program := filepath.Join(dir, "sandbox")
	if _, err := os.Stat(program); err == nil && b.source == "" {
		return program, nil
	}
	from, folder := b.source, b.source
	if b.source == "" {
		from, folder = b.version, filepath.Join(dir, "module")
		defer os.RemoveAll(folder)
		if err := b.require(ctx, folder); err != nil {
			return "", err
		}
	}
	fmt.Fprintf(b.progress, "sandbox: building %s from %s. The first time, that compiles Kubernetes, which takes minutes; %s=no is to fail instead.\n", program, from, BuildVariable)
	began := time.Now()
	// Build to another path and rename, because a program that is running cannot be overwritten.
	next := program + ".next"
	flags, err := b.linkFlags(ctx, folder)
	if err == nil {
		_, err = b.run(ctx, folder, "build", "-mod=mod", "-trimpath", "-ldflags="+flags, "-o", next, sandboxModule+"/cmd/sandbox")
	}
	if err != nil {
		return "", fmt.Errorf("build the sandbox from %s: %w", from, err)
	}
	if err := os.Rename(next, program); err != nil {
		return "", err
	}
	fmt.Fprintf(b.progress, "sandbox: built in %s\n", time.Since(began).Round(time.Second))
	return program, nil
}

// require writes a go.mod file that requires the sandbox module to the given folder, and downloads
// that module. The command "go install" cannot install the module directly, because the module's
// go.mod has a replace directive.
func (b builder) require(ctx context.Context, folder string) error {
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return err
	}
	mod := fmt.Sprintf("module build\n\nrequire %s %s\n\nreplace %s v0.0.0 => %s %s\n", sandboxModule, b.version, clientModule, clientModule, b.version)
	if err := os.WriteFile(filepath.Join(folder, "go.mod"), []byte(mod), 0o600); err != nil {
		return err
	}
	fmt.Fprintf(b.progress, "sandbox: downloading %s %s\n", sandboxModule, b.version)
	out, err := b.run(ctx, folder, "mod", "download", "-json", sandboxModule+"@"+b.version)
	if err != nil {
		var answer struct{ Error string }
		if json.Unmarshal(out, &answer) == nil && answer.Error != "" {
			err = errors.New(answer.Error)
		}
		return fmt.Errorf("download the sandbox (or name a program by %s, or a checkout by %s): %w", BinaryVariable, SourceVariable, err)
	}
	return nil
}

// linkFlags returns the linker flags that set the Kubernetes version which the programs report, as
// in the Makefile.
func (b builder) linkFlags(ctx context.Context, folder string) (string, error) {
	out, err := b.run(ctx, folder, "list", "-mod=mod", "-m", "-f", "{{.Version}}", "k8s.io/kubernetes")
	if err != nil {
		return "", err
	}
	release := strings.TrimSpace(string(out))
	numbers := strings.SplitN(strings.TrimPrefix(release, "v"), ".", 3)
	if len(numbers) != 3 {
		return "", fmt.Errorf("%q is no release of Kubernetes", release)
	}
	flags := "-s -w"
	for _, in := range []string{"k8s.io/component-base/version", "k8s.io/client-go/pkg/version"} {
		for name, value := range map[string]string{"gitVersion": release, "gitMajor": numbers[0], "gitMinor": numbers[1], "gitTreeState": "clean", "gitCommit": ""} {
			flags += fmt.Sprintf(" -X %s.%s=%s", in, name, value)
		}
	}
	return flags, nil
}

// run runs the go command and returns its standard output. If the command fails, the error contains
// the last line of its standard error.
func (b builder) run(ctx context.Context, folder string, args ...string) ([]byte, error) {
	command := exec.CommandContext(ctx, "go", args...)
	command.Dir = folder
	// Clear GOFLAGS and disable the Go workspace, because both are meant for the module of the
	// calling test.
	command.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=", "GOWORK=off")
	var said bytes.Buffer
	command.Stderr = &said
	out, err := command.Output()
	if err == nil {
		return out, nil
	}
	lines := strings.Split(strings.TrimSpace(said.String()), "\n")
	if last := lines[len(lines)-1]; last != "" {
		err = fmt.Errorf("%w: %s", err, last)
	}
	return out, err
}

// lock waits until no other process builds in the given directory, and blocks other builds until
// unlock is called.
func lock(dir string) (unlock func(), err error) {
	file, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX); err != nil {
		file.Close()
		return nil, err
	}
	return func() { _ = file.Close() }, nil
}
