// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package dashboard implements kubectl tide dashboard.
//
//	command.go                          the command
//	cluster.go                          the watched objects of a cluster, and the lookups and
//	                                    actions of pages
//	pods.go, keep.go                    reading pods efficiently, and dropping the unused fields of
//	                                    objects
//	browser.go                          opening a browser
//	terminal.go, input_unix.go,         detecting the Enter key and a closed terminal
//	input_other.go
//	unserved.go                         kinds that the cluster does not serve
//	header.go                           the HTTP header with which programs authenticate
package dashboard

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"tidekeeper.dev/tidekeeper/internal/cli/cmdutil"
	"tidekeeper.dev/tidekeeper/internal/dashboard"
	flagoptions "tidekeeper.dev/tidekeeper/internal/options"
)

// options holds the flags and arguments of the command dashboard.
type options struct {
	*cmdutil.Env
	port          int
	noBrowser     bool
	allowActions  bool
	allNamespaces bool
	headerFile    string
	contexts      cmdutil.Contexts
}

// NewCommand returns the command dashboard.
func NewCommand(e *cmdutil.Env) *cobra.Command {
	o := &options{Env: e}
	cmd := &cobra.Command{
		Use:        "dashboard",
		Aliases:    []string{"page", "ui"},
		SuggestFor: []string{"web", "serve"},
		Short:      "A local web page: pools, what-if, restarts, pod start-up",
		Long: `dashboard serves pages about the cluster to browsers on this machine, with your own rights,
and opens a browser: the pools and their utilization, what fits and what a loss would cost,
past and coming restarts, and pods as they start. The pages follow the cluster. Nothing is
installed in it, and nothing is loaded from the internet.

It listens on 127.0.0.1 only, and sends data only to tabs that were let in. The printed link lets
in one tab, once, and that tab lets in others of its browser. Press Enter in the terminal for
another link, such as for another browser. From another machine, use
ssh -t -L 8123:127.0.0.1:8123 and run it with --port 8123.

Programs get data with the header that --header-file writes: curl -H @FILE reads it.

The pages are read-only unless --allow-actions is given: then users with the rights to do so
can request, suspend and resume restarts, and create and lift freezes.

Restarts and pods of all namespaces are shown, or of the namespace in -n. Kinds that you may
not list are named, and the rest is shown. It ends with Ctrl-C, or with the terminal.

With --contexts the pages cover several clusters: Overview and Restarts show all of them,
with a line and the reason for each cluster that does not answer. The other pages show a
single cluster, which is part of their address.`,
		Example: `  kubectl tide dashboard
  kubectl tide dashboard -n shop --port 8123 --no-browser
  kubectl tide dashboard --allow-actions
  kubectl tide dashboard --contexts prod,edge
  kubectl tide dashboard --port 8123 --header-file page.header
  curl -H @page.header http://127.0.0.1:8123/restarts.json`,
		Args: cmdutil.NoArguments,
		RunE: cmdutil.RunE(o),
	}
	cmd.Flags().IntVar(&o.port, "port", 0, "port on 127.0.0.1; 0 picks a free port")
	flagoptions.SetRange(cmd.Flags(), "port", flagoptions.Between(0, 65535))
	cmd.Flags().BoolVar(&o.noBrowser, "no-browser", false, "do not open a browser, only print the link")
	cmd.Flags().BoolVar(&o.allowActions, "allow-actions", false, "let the page request, suspend and resume restarts, and freeze and thaw")
	cmd.Flags().BoolVarP(&o.allNamespaces, "all-namespaces", "A", false, "show restarts and pods of all namespaces, which is the default without -n")
	cmd.Flags().StringVar(&o.headerFile, "header-file", "", "write the header that lets in programs to this new file, which only you can read and which is removed at the end; curl -H @FILE reads it")
	o.contexts.AddTo(e, cmd)
	return cmd
}

// Complete implements [cmdutil.Options].
func (o *options) Complete(cmd *cobra.Command, _ []string) error {
	return o.contexts.Complete(o.Env, cmd)
}

// Validate implements [cmdutil.Options].
func (o *options) Validate() error {
	if o.port < 0 || o.port > 65535 {
		return fmt.Errorf("--port %d: write 0 to 65535", o.port)
	}
	return nil
}

// Run implements [cmdutil.Options].
func (o *options) Run(ctx context.Context) error {
	clusters, err := o.connect(ctx)
	if err != nil {
		return err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp4", net.JoinHostPort("127.0.0.1", strconv.Itoa(o.port)))
	if err != nil {
		return fmt.Errorf("%w: choose another --port, or 0 for a free port", err)
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	token, remove, err := writeHeader(o.headerFile)
	if err != nil {
		return err
	}
	defer remove()
	site, worlds := o.site(clusters, token)
	link := site.NewLink(listener.Addr())
	fmt.Fprintf(o.Console.Out, "%s\n", link)
	o.Console.Note(o.introduction(clusters))
	var running sync.WaitGroup
	for _, world := range worlds {
		running.Go(func() { world.Run(ctx) })
	}
	running.Go(func() {
		watchTerminal(ctx, o.In, stop, func() { fmt.Fprintf(o.Console.Out, "%s\n", site.NewLink(listener.Addr())) })
	})
	if !o.noBrowser && o.Console.Screen.Terminal {
		running.Go(func() { openBrowser(ctx, link, site.Used(), o.Console.Note) })
	}
	err = site.Serve(ctx, listener)
	stop()
	running.Wait()
	return err
}

// connect connects to the cluster, or to each cluster of --contexts. Without --contexts, it returns
// an error if the connection fails. With --contexts, it continues with the other clusters.
func (o *options) connect(ctx context.Context) ([]*cluster, error) {
	if o.contexts.Given() {
		return o.connectAll(ctx)
	}
	c, err := o.newCluster(o.Env)
	if err != nil {
		return nil, err
	}
	bounded, cancel := context.WithTimeout(ctx, cmp.Or(c.timeout, 10*time.Second))
	defer cancel()
	c.about.User, err = c.user(bounded)
	return []*cluster{c}, err
}

// connectAll connects to the clusters of --contexts. It prints a note about each cluster that does
// not answer. The pages also show such a cluster.
func (o *options) connectAll(ctx context.Context) ([]*cluster, error) {
	var clusters []*cluster
	byContext := map[string]*cluster{}
	for _, name := range o.contexts.Names {
		c, err := o.newCluster(o.ForContext(name))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		clusters, byContext[name] = append(clusters, c), c
	}
	answers, err := cmdutil.AskContextsWithin(ctx, o.Env, askWithin, o.contexts.Names, func(ctx context.Context, e *cmdutil.Env) (string, error) {
		return byContext[*e.Kubeconfig.Flags.Context].user(ctx)
	})
	if err != nil {
		return nil, err
	}
	for i, a := range answers {
		if clusters[i].about.User = a.Value; a.Problem != "" {
			o.Console.Note("note: " + a.Context + ": " + a.Problem)
		}
	}
	return clusters, nil
}

// site returns the [dashboard.Site] that serves the pages, and the World (the watched objects) of
// each cluster. token authenticates programs; "" means that programs have no access.
func (o *options) site(clusters []*cluster, token string) (*dashboard.Site, []*dashboard.World) {
	settings := dashboard.Options{Token: token, Now: o.Now, Local: o.Local, OnGuess: func() {
		o.Console.Note("note: many wrong codes were tried, and no link lets in a tab now. Press Enter for another link.")
	}}
	members, worlds := make([]*dashboard.Member, len(clusters)), make([]*dashboard.World, len(clusters))
	for i, c := range clusters {
		of := settings
		of.About = c.about
		worlds[i] = dashboard.NewWorld(c.kinds(), o.Now)
		members[i] = dashboard.NewMember(worlds[i], c.source(o.allowActions), of)
	}
	if !o.contexts.Given() {
		return dashboard.NewSite(members[0], settings), worlds
	}
	settings.About.Namespace = clusters[0].about.Namespace
	return dashboard.NewFleet(members, settings), worlds
}

// introduction returns the message that the command prints when it starts.
func (o *options) introduction(clusters []*cluster) string {
	mode := "read-only"
	if o.allowActions {
		mode = "with actions"
	}
	shown := fmt.Sprintf("Context %s, as %s", clusters[0].about.Context, cmp.Or(clusters[0].about.User, "an unknown user"))
	if o.contexts.Given() {
		shown = "Contexts " + strings.Join(o.contexts.Names, ", ")
	}
	return fmt.Sprintf("%s, %s. The link lets in one tab, once. Press Enter for another link, Ctrl-C to end.", shown, mode)
}
