// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package cmdutil

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"tidekeeper.dev/tidekeeper/internal/term"
)

// Console holds the output streams of the plugin, and the properties of the terminal.
type Console struct {
	Out, ErrOut io.Writer
	Screen      term.Screen
}

// Note prints a line to stderr. It removes control characters, because parts of the message may
// come from the cluster.
func (c *Console) Note(text string) { fmt.Fprintln(c.ErrOut, term.Printable(term.OneLine(text))) }

// NothingFound prints to stderr that a list is empty. `what` is the plural name of the listed
// objects. namespace is "" if the list covers all namespaces. filtered is true if the list may
// exclude some objects because of a filter.
func (c *Console) NothingFound(what, namespace string, filtered bool) {
	where := ""
	if namespace != "" {
		where = " in the namespace " + namespace
	}
	if filtered {
		where += " that match"
	}
	fmt.Fprintf(c.ErrOut, "There are no %s%s.\n", what, where)
}

// Write prints a table to stdout.
func (c *Console) Write(t *term.Table) error { return t.WriteTo(c.Out, c.Screen) }

// Fail prints an error to stderr as a single line, and returns the exit code of the process.
func (c *Console) Fail(ctx context.Context, err error) int {
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		return ExitInterrupted
	}
	if known := (*CodedError)(nil); errors.As(err, &known) && known.Err == nil {
		return known.Code
	}
	code, message := ExplainError(err)
	if code == ExitForbidden && strings.Contains(message, "is forbidden: User ") {
		message += ": see kubectl tide check, and SECURITY.md for the roles"
	}
	c.Note("error: " + message)
	return code
}
