// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"

	"github.com/spf13/pflag"

	"tidekeeper.dev/tidekeeper/internal/manager"
	"tidekeeper.dev/tidekeeper/internal/options"
)

// configuration returns the page that documents the manager's flags.
func configuration() string {
	var b strings.Builder
	b.WriteString("# Configuration of the manager\n\n" + notice)
	b.WriteString("The manager is configured by flags only; `tidekeeper --help` lists the same. For a value that\n" +
		"is not allowed it prints one line on stderr and exits with code 1, before it starts anything.\n")
	sets := manager.NewOptions().Flags()
	for _, name := range sets.Order {
		fmt.Fprintf(&b, "\n## %s\n\n| flag | default | allowed | |\n|---|---|---|---|\n", strings.ToUpper(name[:1])+name[1:])
		sets.FlagSets[name].VisitAll(func(f *pflag.Flag) {
			value, usage := pflag.UnquoteUsage(f)
			name := "`--" + f.Name
			if value != "" {
				name += "=" + value
			}
			fmt.Fprintf(&b, "| %s` | %s | %s | %s |\n", name, code(strings.Trim(f.DefValue, "[]")), allowed(f), cell(usage))
		})
	}
	return b.String()
}

// allowed returns the range of a flag's allowed values. It returns "" if the flag has no range.
func allowed(f *pflag.Flag) string {
	if limits := f.Annotations[options.RangeAnnotation]; len(limits) == 2 {
		return code(limits[0]) + " to " + code(limits[1])
	}
	return ""
}

// code formats a string as inline code.
func code(text string) string {
	if text == "" {
		return ""
	}
	return "`" + strings.ReplaceAll(text, "|", `\|`) + "`"
}

// cell escapes a string for a table cell.
func cell(text string) string {
	return strings.NewReplacer("\n", " ", "|", `\|`, "<", "&lt;", "*", `\*`).Replace(strings.TrimSpace(text))
}
