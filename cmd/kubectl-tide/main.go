// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Command kubectl-tide is the kubectl plugin "kubectl tide". This package only starts the process;
// see internal/cli for the commands.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	_ "k8s.io/client-go/plugin/pkg/client/auth" // register all authentication plugins of kubectl

	"tidekeeper.dev/tidekeeper/internal/cli"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	go func() {
		<-ctx.Done()
		stop() // Restore the default handling, so that a second Ctrl-C ends the process immediately.
	}()
	os.Exit(cli.Run(ctx, os.Args, os.Stdin, os.Stdout, os.Stderr))
}
