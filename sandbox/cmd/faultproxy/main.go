// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Command faultproxy is the `sandbox proxy` command as a separate program. Without the control
// plane linked in, it compiles in seconds, even with the race detector that tests enable.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"k8s.io/client-go/tools/clientcmd"

	"tidekeeper.dev/tidekeeper/sandbox/internal/fault"
	"tidekeeper.dev/tidekeeper/sandbox/internal/proxy"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

// run parses the `sandbox proxy` flags that tests pass, and serves until it is interrupted.
func run() error {
	kubeconfig := flag.String("kubeconfig", "", "how the proxy reaches the API server, and as whom")
	write := flag.String("write-kubeconfig", "", "where the kubeconfig for the clients of the proxy is written")
	scenario := flag.String("scenario", "", "a file with the rules to begin with")
	log := flag.String("log", "", "where the log is written")
	control := flag.String("control", "", "the file of the socket of the proxy's own API")
	flag.Parse()

	o := proxy.Options{Listen: "127.0.0.1:0", Control: *control}
	config := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(&clientcmd.ClientConfigLoadingRules{ExplicitPath: *kubeconfig}, nil)
	var err error
	if o.Upstream, err = config.ClientConfig(); err != nil {
		return fmt.Errorf("--kubeconfig: %w", err)
	}
	if o.Namespace, _, err = config.Namespace(); err != nil {
		return fmt.Errorf("--kubeconfig: %w", err)
	}
	if *scenario != "" {
		text, err := os.ReadFile(*scenario)
		if err != nil {
			return fmt.Errorf("--scenario: %w", err)
		}
		if o.Rules, err = fault.Parse(text); err != nil {
			return fmt.Errorf("--scenario %s: %w", *scenario, err)
		}
	}
	out, err := os.Create(*log)
	if err != nil {
		return fmt.Errorf("--log: %w", err)
	}
	defer out.Close()
	o.Log = out
	server, err := proxy.Start(o)
	if err != nil {
		return err
	}
	// Write to a temporary name and rename the file: a client that waits for the file may read it
	// as soon as it exists.
	unfinished := *write + ".unfinished"
	if err := errors.Join(os.WriteFile(unfinished, server.Kubeconfig, 0o600), os.Rename(unfinished, *write)); err != nil {
		return fmt.Errorf("write the kubeconfig: %w", err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	return server.Run(ctx)
}
