// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"tidekeeper.dev/tidekeeper/internal/cli"
)

// commandsPage returns the page that documents the plugin's commands, with each command's help
// text.
func commandsPage(root *cobra.Command) string {
	var b strings.Builder
	b.WriteString("# Commands of kubectl tide\n\n" + notice)
	b.WriteString("`kubectl tide COMMAND --help` prints the same.\n")
	writeCommand(&b, root)
	return b.String()
}

// writeCommand writes the sections about a command and its subcommands.
func writeCommand(b *strings.Builder, cmd *cobra.Command) {
	cmd.InitDefaultHelpFlag()
	fmt.Fprintf(b, "\n## %s\n\n%s\n", name(cmd), strings.TrimSpace(longText(cmd)))
	if cmd.Runnable() && !cmd.HasSubCommands() {
		fmt.Fprintf(b, "\n```\n%s\n```\n", cmd.UseLine())
	}
	if cmd.Example != "" {
		fmt.Fprintf(b, "\nExamples:\n\n```\n%s\n```\n", unindent(cmd.Example))
	}
	writeFlags(b, cmd)
	for _, sub := range cmd.Commands() {
		if !sub.Hidden {
			writeCommand(b, sub)
		}
	}
}

// writeFlags writes a table of a command's own flags. It omits the flags that are inherited from
// parent commands.
func writeFlags(b *strings.Builder, cmd *cobra.Command) {
	header := "\n| flag | default | |\n|---|---|---|\n"
	cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if f.Hidden || f.Name == "help" || f.Name == "version" {
			return
		}
		value, usage := pflag.UnquoteUsage(f)
		flag := "--" + f.Name
		if f.Shorthand != "" {
			flag = "-" + f.Shorthand + ", " + flag
		}
		if value != "" {
			flag += " " + value
		}
		def := strings.Trim(f.DefValue, "[]")
		if def == "false" || def == "0" || def == "0s" {
			def = ""
		}
		fmt.Fprintf(b, "%s| %s | %s | %s |\n", header, code(flag), code(def), cell(usage))
		header = ""
	})
}

func name(cmd *cobra.Command) string {
	return strings.Replace(cmd.CommandPath(), "kubectl-tide", "kubectl tide", 1)
}

func longText(cmd *cobra.Command) string {
	if cmd.Long == "" {
		return cmd.Short + "."
	}
	return cmd.Long
}

// unindent removes the two leading spaces from each line of an example.
func unindent(example string) string {
	return strings.TrimSpace(strings.ReplaceAll("\n"+example, "\n  ", "\n"))
}

func commands() string { return commandsPage(cli.Command()) }
