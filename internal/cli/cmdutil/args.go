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

// NoArguments rejects all arguments of a command that accepts none. Its error treats the first
// argument as a misspelled subcommand.
func NoArguments(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return UnknownCommand(cmd, args[0])
}

// UnknownCommand returns the error for an unknown subcommand name.
func UnknownCommand(cmd *cobra.Command, name string) error {
	hint := "see " + cmd.CommandPath() + " --help"
	if similar := Similar(cmd, name); similar != "" {
		hint = "did you mean " + similar + "?"
	}
	return fmt.Errorf("unknown command %q for %q: %s", name, cmd.CommandPath(), hint)
}

// Similar returns the name of the subcommand that is most similar to the given name, or "" if there
// is no similar subcommand.
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

// OneName accepts only command lines with exactly one argument, the name of an object.
func OneName(cmd *cobra.Command, args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("%s requires exactly one NAME, got %d: see %s --help", cmd.CommandPath(), len(args), cmd.CommandPath())
	}
	return nil
}

// SomeNames accepts only command lines with at least one argument. Each argument is the name of an
// object.
func SomeNames(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return fmt.Errorf("%s requires at least one NAME: see %s --help", cmd.CommandPath(), cmd.CommandPath())
	}
	return nil
}

// Kind lists the names by which users refer to a kind of objects on the command line.
type Kind struct {
	Name  string
	Group string
	// Resources lists the plural, singular and short resource names, which are accepted as TYPE in
	// TYPE/NAME.
	Resources []string
}

// Find parses an argument of the form NAME or TYPE/NAME, and returns NAME. ok is false if TYPE is
// not this kind or NAME is missing.
func (k Kind) Find(arg string) (name string, ok bool) {
	resource, name, slash := strings.Cut(arg, "/")
	if !slash {
		return arg, true
	}
	resource, group, dot := strings.Cut(strings.ToLower(resource), ".")
	ok = slices.Contains(k.Resources, resource) && (!dot || group == k.Group || strings.HasSuffix(group, "."+k.Group))
	return name, ok && name != ""
}

// Names returns the object names in arguments of the form NAME or TYPE/NAME, without duplicates. It
// returns an error if the TYPE of an argument is not this kind, or if the NAME is missing.
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

// MissingName returns the error for an object that could not be read by its name. If err says that
// the object does not exist, and the name resembles a subcommand of cmd, the error suggests the
// subcommand. Otherwise, MissingName returns err. cmd may be nil.
func MissingName(cmd *cobra.Command, name string, err error) error {
	var failure *CodedError
	if cmd != nil && errors.As(err, &failure) && failure.Code == ExitNotFound && Similar(cmd, name) != "" {
		return UnknownCommand(cmd, name)
	}
	return err
}
