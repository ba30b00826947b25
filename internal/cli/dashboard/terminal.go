// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"context"
	"io"
	"os"
	"time"

	"golang.org/x/term"
)

// watchInterval is the interval between two checks of the terminal.
const watchInterval = 300 * time.Millisecond

// watchTerminal calls onEnter whenever Enter is pressed in the terminal, and calls stop once the
// terminal is closed. It does nothing if the input is not a terminal, because the input may belong
// to a script.
func watchTerminal(ctx context.Context, in io.Reader, stop, onEnter func()) {
	file, ok := in.(*os.File)
	if !ok || !term.IsTerminal(int(file.Fd())) {
		return
	}
	pressed := newEnterKey(file)
	ticker := time.NewTicker(watchInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			if !term.IsTerminal(int(file.Fd())) {
				stop()
				return
			}
			if pressed() {
				onEnter()
			}
		}
	}
}
