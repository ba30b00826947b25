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

// Start returns an error, as only Linux can end a process together with its parent.
func Start(*exec.Cmd) error {
	return fmt.Errorf("this needs Linux, and the system is %s: %w", runtime.GOOS, errors.ErrUnsupported)
}
