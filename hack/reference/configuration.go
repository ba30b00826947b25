// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"

	"github.com/spf13/pflag"

	"tidekeeper.dev/tidekeeper/internal/manager"
)

// configuration returns the page about the manager's flags.
func configuration() string {
	var b strings.Builder
	b.WriteString("# Configuration of the manager\n\n" + notice)
	b.WriteString("The manager takes flags and nothing else; `tidekeeper --help` lists the same. A value that\n" +
		"cannot be is one line on stderr and exit code 1, before anything is started.\n")
	options := manager.DefaultOptions()
	sets := options.Flags()
	for _, name := range sets.Order {
		fmt.Fprintf(&b, "\n## %s\n\n| flag | default | |\n|---|---|---|\n", strings.ToUpper(name[:1])+name[1:])
		sets.FlagSets[name].VisitAll(func(f *pflag.Flag) {
			value, usage := pflag.UnquoteUsage(f)
			name := "`--" + f.Name
			if value != "" {
				name += "=" + value
			}
			fmt.Fprintf(&b, "| %s` | %s | %s |\n", name, code(strings.Trim(f.DefValue, "[]")), cell(usage))
		})
	}
	return b.String()
}

// code marks a text as one that can be typed.
func code(text string) string {
	if text == "" {
		return ""
	}
	return "`" + strings.ReplaceAll(text, "|", `\|`) + "`"
}

// cell makes a text fit into a table.
func cell(text string) string {
	return strings.NewReplacer("\n", " ", "|", `\|`, "<", "&lt;", "*", `\*`).Replace(strings.TrimSpace(text))
}
