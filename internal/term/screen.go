// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package term

import (
	"cmp"
	"io"
	"os"
	"strings"

	"golang.org/x/term"
)

// Screen describes the capabilities of an output stream. The zero value describes a file or pipe,
// whose output is neither cut nor colored and has no bars.
type Screen struct {
	Terminal bool
	Width    int // width in columns; 0 means unlimited
	Colors   bool
	// ASCII is set if the terminal cannot show the block characters of bars.
	ASCII bool
}

// ScreenOf returns the capabilities of an output stream.
func ScreenOf(out io.Writer) Screen {
	file, ok := out.(*os.File)
	if !ok || !term.IsTerminal(int(file.Fd())) {
		return Screen{}
	}
	s := Screen{Terminal: true, Width: 80, Colors: os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb", ASCII: asciiLocale(os.Getenv)}
	if width, _, err := term.GetSize(int(file.Fd())); err == nil && width > 0 {
		s.Width = width
	}
	return s
}

// asciiLocale reports whether the locale names a charset other than UTF-8. A missing locale counts
// as UTF-8, because containers often lack a locale although the terminal supports UTF-8.
func asciiLocale(getenv func(string) string) bool {
	locale := strings.ToLower(cmp.Or(getenv("LC_ALL"), getenv("LC_CTYPE"), getenv("LANG")))
	return locale != "" && !strings.Contains(locale, "utf-8") && !strings.Contains(locale, "utf8")
}

// Color is a color of the terminal's palette.
type Color string

// Colors that the kubectl plugin uses, as parameters of ANSI escape sequences. Plain is the
// terminal's default color.
const (
	Plain  Color = ""
	Red    Color = "31"
	Green  Color = "32"
	Yellow Color = "33"
)

// Paint adds a color to a string if the screen supports colors.
func (s Screen) Paint(c Color, text string) string {
	if !s.Colors || c == Plain || text == "" {
		return text
	}
	return "\x1b[" + string(c) + "m" + text + "\x1b[0m"
}
