// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package cmdutil

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// NoArguments refuses arguments, which are probably misspelt commands.
func NoArguments(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return UnknownCommand(cmd, args[0])
}

// UnknownCommand is the error for the name of a command that does not exist.
func UnknownCommand(cmd *cobra.Command, name string) error {
	hint := "see " + cmd.CommandPath() + " --help"
	if similar := Similar(cmd, name); similar != "" {
		hint = "did you mean " + similar + "?"
	}
	return fmt.Errorf("unknown command %q for %q: %s", name, cmd.CommandPath(), hint)
}

// Similar returns the subcommand with the most similar name, or "" if none is similar.
func Similar(cmd *cobra.Command, name string) string {
	for _, sub := range cmd.Commands() {
		if slices.Contains(sub.SuggestFor, name) {
			return sub.Name()
		}
	}
	cmd.SuggestionsMinimumDistance = 2
	if similar := cmd.SuggestionsFor(name); len(similar) > 0 {
		return similar[0]
	}
	return ""
}

// OneName requires exactly one name as argument.
func OneName(cmd *cobra.Command, args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("%s requires exactly one NAME, got %d: see %s --help", cmd.CommandPath(), len(args), cmd.CommandPath())
	}
	return nil
}

// SomeNames requires one or more names as arguments.
func SomeNames(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return fmt.Errorf("%s requires at least one NAME: see %s --help", cmd.CommandPath(), cmd.CommandPath())
	}
	return nil
}

// Kind has the names of a kind on the command line.
type Kind struct {
	Name  string
	Group string
	// Resources are the names of the kind in TYPE/NAME: plural, singular and short names.
	Resources []string
}

// Find returns the name in an argument of the form NAME or TYPE/NAME, if TYPE is this kind.
func (k Kind) Find(arg string) (name string, ok bool) {
	resource, name, slash := strings.Cut(arg, "/")
	if !slash {
		return arg, true
	}
	resource, group, dot := strings.Cut(strings.ToLower(resource), ".")
	ok = slices.Contains(k.Resources, resource) && (!dot || group == k.Group || strings.HasSuffix(group, "."+k.Group))
	return name, ok && name != ""
}

// Names returns the names in arguments of the form NAME or TYPE/NAME, without duplicates.
func (k Kind) Names(args []string) ([]string, error) {
	var names []string
	for _, arg := range args {
		name, ok := k.Find(arg)
		if !ok {
			return nil, fmt.Errorf("%q is not a %s: write NAME or %s/NAME", arg, k.Name, k.Resources[0])
		}
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names, nil
}

// MissingName returns the error for an object that does not exist. If the name looks like a misspelt command,
// the error says so. cmd may be nil.
func MissingName(cmd *cobra.Command, name string, err error) error {
	var failure *CodedError
	if cmd != nil && errors.As(err, &failure) && failure.Code == ExitNotFound && Similar(cmd, name) != "" {
		return UnknownCommand(cmd, name)
	}
	return err
}
