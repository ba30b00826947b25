// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package dashboard

import (
	"bufio"
	"os"
)

// newEnterKey returns a function that reports whether Enter was pressed since the last call. The
// terminal cannot be polled on this platform, so a goroutine reads lines from it.
func newEnterKey(terminal *os.File) (pressed func() bool) {
	lines := make(chan struct{})
	go func() {
		for input := bufio.NewScanner(terminal); input.Scan(); {
			lines <- struct{}{}
		}
	}()
	return func() bool {
		select {
		case <-lines:
			return true
		default:
			return false
		}
	}
}
