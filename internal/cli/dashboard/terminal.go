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

// watchInterval is how often the terminal is looked at.
const watchInterval = 300 * time.Millisecond

// watchTerminal calls onEnter for each Enter that is pressed in the terminal, and ends the run when its
// terminal is gone. Input that is not a terminal is left alone: it may be that of a script.
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
