// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Command kubectl-tide is the kubectl plugin: kubectl tide. What it does is all
// in internal/cli; this is only the process.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	_ "k8s.io/client-go/plugin/pkg/client/auth" // as kubectl: all ways to log in

	"tidekeeper.dev/tidekeeper/internal/cli"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	go func() {
		<-ctx.Done()
		stop() // a second Ctrl-C ends it at once
	}()
	os.Exit(cli.Run(ctx, os.Args, os.Stdin, os.Stdout, os.Stderr))
}
