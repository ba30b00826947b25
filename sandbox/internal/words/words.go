// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package words

import (
	"fmt"
	"strings"
)

// Indent returns lines as an indented block, or a remark if they are blank.
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

// OneLine returns the first line of a text, with … if there are more.
func OneLine(text string) string {
	text, _, more := strings.Cut(strings.TrimSpace(text), "\n")
	if more {
		text += " …"
	}
	return text
}

// Ordinal returns the ordinal of a number in English, such as "first" or "4th".
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

// Times returns a count in English, such as "twice".
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
