// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"io"
	"os"

	"golang.org/x/term"
)

// screen is what the output can show. The zero value is a file or a pipe:
// nothing is cut off, coloured or drawn.
type screen struct {
	terminal bool
	width    int // in columns; 0: without end
	color    bool
}

// screenOf returns what there is at the other end of the output.
func screenOf(out io.Writer) screen {
	file, ok := out.(*os.File)
	if !ok || !term.IsTerminal(int(file.Fd())) {
		return screen{}
	}
	s := screen{terminal: true, width: 80, color: os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"}
	if width, _, err := term.GetSize(int(file.Fd())); err == nil && width > 0 {
		s.width = width
	}
	return s
}

// hue is a colour, as the terminal's palette has it.
type hue string

const (
	plain  hue = ""
	red    hue = "31"
	green  hue = "32"
	yellow hue = "33"
	faint  hue = "2"
)

// paint colours a text, if the screen has colours.
func (s screen) paint(h hue, text string) string {
	if !s.color || h == plain || text == "" {
		return text
	}
	return "\x1b[" + string(h) + "m" + text + "\x1b[0m"
}
