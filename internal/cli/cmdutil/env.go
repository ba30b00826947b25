// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package cmdutil

import (
	"fmt"
	"io"
	"time"

	"k8s.io/cli-runtime/pkg/genericclioptions"

	"tidekeeper.dev/tidekeeper/internal/cli/term"
)

// Env is what a run of the plugin has: streams, kubectl's flags, a clock and a
// screen.
type Env struct {
	In          io.Reader
	Out, ErrOut io.Writer
	Flags       *genericclioptions.ConfigFlags
	Screen      term.Screen
	Now         func() time.Time
	Local       *time.Location
}

// Note prints one line to stderr, without what would steer a terminal: parts of
// it may come from the cluster.
func (e *Env) Note(text string) { fmt.Fprintln(e.ErrOut, term.Printable(term.OneLine(text))) }

// NothingFound says on stderr that there is nothing to show.
func (e *Env) NothingFound(what, namespace string, filtered bool) {
	where := ""
	if namespace != "" {
		where = " in the namespace " + namespace
	}
	if filtered {
		where += " that match"
	}
	fmt.Fprintf(e.ErrOut, "There are no %s%s.\n", what, where)
}

// Write prints a table.
func (e *Env) Write(t *term.Table) error { return t.WriteTo(e.Out, e.Screen) }
