// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package words

import (
	"fmt"
	"strings"
)

// Indent writes lines below another.
func Indent(lines []string) string {
	if strings.TrimSpace(strings.Join(lines, "")) == "" {
		return "    (it has written nothing)\n"
	}
	text := ""
	for _, line := range lines {
		text += "    " + line + "\n"
	}
	return text
}

// OneLine returns the first line of a text, with a sign that there are more.
func OneLine(text string) string {
	text, _, more := strings.Cut(strings.TrimSpace(text), "\n")
	if more {
		text += " …"
	}
	return text
}

// Ordinal returns the word for a number.
func Ordinal(n int) string {
	switch n {
	case 1:
		return "first"
	case 2:
		return "second"
	case 3:
		return "third"
	}
	return fmt.Sprintf("%dth", n)
}

// Times returns how often, in words.
func Times(n int) string {
	switch n {
	case 0:
		return "never"
	case 1:
		return "once"
	case 2:
		return "twice"
	}
	return fmt.Sprintf("%d times", n)
}
