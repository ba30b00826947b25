// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package words

import (
	"fmt"
	"strings"
)

// Indent returns a program's output lines as an indented block. If all lines are blank, it returns
// an indented remark that there was no output.
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

// OneLine returns the first line of a text, followed by … if there are more lines.
func OneLine(text string) string {
	text, _, more := strings.Cut(strings.TrimSpace(text), "\n")
	if more {
		text += " …"
	}
	return text
}

// Ordinal returns the English ordinal of a number, such as "first" or "4th".
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

// Times returns a count in English words, such as "twice".
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
