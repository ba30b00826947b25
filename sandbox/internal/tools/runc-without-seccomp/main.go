// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Command runc-without-seccomp wraps a runc that was built without libseccomp. It removes the
// seccomp filter from the container's configuration, because such a runc rejects containers with a
// seccomp filter.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"syscall"
)

func main() {
	if err := run(os.Args); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

// run executes runc in place of this process.
func run(args []string) error {
	if i := slices.Index(args, "--bundle"); i >= 0 && i+1 < len(args) {
		if err := dropFilter(filepath.Join(args[i+1], "config.json")); err != nil {
			return err
		}
	}
	runc := filepath.Join(filepath.Dir(args[0]), "runc")
	return syscall.Exec(runc, append([]string{runc}, args[1:]...), os.Environ())
}

// dropFilter removes the seccomp filter from the OCI runtime configuration in a file.
func dropFilter(file string) error {
	data, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var spec, platform map[string]json.RawMessage
	if err := json.Unmarshal(data, &spec); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	if err := json.Unmarshal(spec["linux"], &platform); err != nil {
		return fmt.Errorf("%s: linux: %w", file, err)
	}
	if platform["seccomp"] == nil {
		return nil
	}
	delete(platform, "seccomp")
	if spec["linux"], err = json.Marshal(platform); err != nil {
		return err
	}
	if data, err = json.Marshal(spec); err != nil {
		return err
	}
	return os.WriteFile(file, data, 0o600)
}
