// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package child

import (
	"errors"
	"fmt"
	"os/exec"
	"runtime"
)

// Start returns an error, because only Linux can kill a child process when its parent exits.
func Start(*exec.Cmd) error {
	return fmt.Errorf("this needs Linux, and the system is %s: %w", runtime.GOOS, errors.ErrUnsupported)
}
