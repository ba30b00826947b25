// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package dashboard is kubectl tide dashboard.
//
//   - command.go: the command
//   - cluster.go: what the pages read from the cluster, and what they may do
//   - browser.go: opening a browser, and the end of the terminal
package dashboard

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"strconv"
	"sync"

	"github.com/spf13/cobra"

	"tidekeeper.dev/tidekeeper/internal/cli/cmdutil"
	"tidekeeper.dev/tidekeeper/internal/dashboard"
)

// options are those of dashboard.
type options struct {
	*cmdutil.Env
	port          int
	noBrowser     bool
	allowActions  bool
	allNamespaces bool
}

// NewCommand returns the command dashboard.
func NewCommand(e *cmdutil.Env) *cobra.Command {
	o := &options{Env: e}
	cmd := &cobra.Command{
		Use:        "dashboard",
		Aliases:    []string{"page", "ui"},
		SuggestFor: []string{"web", "serve"},
		Short:      "A page to look at: pools, what if, restarts, start-up",
		Long: `dashboard serves pages about the cluster to the browsers of this machine, with your own
rights, and opens one: the pools and their levels, what fits and what would be lost,
restarts past and coming, and pods as they start. The pages follow the cluster. Nothing
is installed, and nothing is loaded from elsewhere.

It listens on 127.0.0.1 only. The link that it prints has the token in it without which
no data is sent; it is another one in each run. From another machine: ssh -L 8123:127.0.0.1:8123
and --port 8123 there.

Nothing can be changed on the pages, unless --allow-actions is given: then restarts can
be requested, suspended and resumed, and freezes be created and lifted, by those who may.

Restarts and pods are those of all namespaces, or of the one that -n names. What you may
not list is named, and the rest is shown. It ends with Ctrl-C, or with the terminal.`,
		Example: `  kubectl tide dashboard
  kubectl tide dashboard -n shop --port 8123 --no-browser
  kubectl tide dashboard --allow-actions`,
		Args: cmdutil.NoArguments,
		RunE: cmdutil.RunE(o),
	}
	cmd.Flags().IntVar(&o.port, "port", 0, "the port on 127.0.0.1; 0 is one that is free")
	cmd.Flags().BoolVar(&o.noBrowser, "no-browser", false, "do not open a browser, only print the link")
	cmd.Flags().BoolVar(&o.allowActions, "allow-actions", false, "let the page request, suspend and resume restarts, and freeze and thaw")
	cmd.Flags().BoolVarP(&o.allNamespaces, "all-namespaces", "A", false, "restarts and pods of all namespaces, which is the default without -n")
	return cmd
}

// Complete is part of [cmdutil.Options].
func (o *options) Complete(*cobra.Command, []string) error { return nil }

// Validate is part of [cmdutil.Options].
func (o *options) Validate() error {
	if o.port < 0 || o.port > 65535 {
		return fmt.Errorf("--port %d: write 0 to 65535", o.port)
	}
	return nil
}

// Run is part of [cmdutil.Options].
func (o *options) Run(ctx context.Context) error {
	c, err := o.connect(ctx)
	if err != nil {
		return err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp4", net.JoinHostPort("127.0.0.1", strconv.Itoa(o.port)))
	if err != nil {
		return fmt.Errorf("%w: --port chooses another, and 0 one that is free", err)
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	world := dashboard.NewWorld(c.kinds(), o.Now)
	site := dashboard.NewSite(world, c.source(o.allowActions), dashboard.Options{About: c.about, Token: dashboard.NewToken(), Now: o.Now, Local: o.Local})
	link := site.Link(listener.Addr())
	fmt.Fprintf(o.Out, "%s\n", link)
	mode := "read-only"
	if o.allowActions {
		mode = "with actions"
	}
	o.Note(fmt.Sprintf("Context %s, as %s, %s. Keep the link to yourself: it opens the page for everyone on this machine. Ctrl-C ends it.", c.about.Context, cmp.Or(c.about.User, "an unknown user"), mode))
	var running sync.WaitGroup
	running.Go(func() { world.Run(ctx) })
	running.Go(func() { awaitHangup(ctx, o.In, stop) })
	if !o.noBrowser && o.Screen.Terminal {
		running.Go(func() { openBrowser(ctx, link, site.Used(), o.Note) })
	}
	err = site.Serve(ctx, listener)
	stop()
	running.Wait()
	return err
}
