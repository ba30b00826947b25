// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Command demo shows Tidekeeper on a real control plane until Ctrl-C, which stops all programs and
// removes their files. Its binary is named sandbox-demo. 'sandbox demo' and make demo run it.
//
//	sandbox-demo                fills a cluster with sample objects, and opens its dashboard in a browser
//	sandbox-demo --steps        shows a node pool step by step: each step has a title, runs the commands
//	                            that a user would type, and verifies their effect
//	sandbox-demo --steps --page does both
//	sandbox-demo … --once       exits afterwards, with exit code 1 if a step had no effect
//
// The programs sandbox, tidekeeper and kubectl-tide must be in the same folder as sandbox-demo.
// With --steps, it must run in the root of the repository.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"
)

// patience is the maximum time to wait for a step's effect. It is more than a minute because
// schedules have ticks at full minutes.
const patience = 90 * time.Second

func main() {
	shown := flag.Bool("steps", false, "show a node pool step by step, in the root of the repository")
	once := flag.Bool("once", false, "exit after the last step")
	page := flag.Bool("page", false, "after the last step, fill the cluster with something to look at, and open its page in a browser")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	if err := run(ctx, *shown, *once, *page); err != nil {
		if ctx.Err() != nil {
			err = errors.New("interrupted")
		}
		fmt.Fprintf(os.Stderr, "\nError: %v\n", err)
		stop()
		os.Exit(1)
	}
}

func run(ctx context.Context, shown, once, page bool) (err error) {
	d, err := newDemo()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.close()) }()
	if shown {
		err = d.show(ctx, page)
	} else {
		err = d.trial(ctx)
	}
	if err != nil || once {
		return err
	}
	return d.stay(ctx, page || !shown)
}

// show runs the steps of the demo one after the other.
func (d *demo) show(ctx context.Context, page bool) error {
	if page {
		steps = append(steps, worldStep)
	}
	for i, s := range steps {
		fmt.Printf("\n%s\n", bold(fmt.Sprintf("[%d/%d] %s", i+1, len(steps), s.title)))
		if err := s.do(ctx, d); err != nil {
			return fmt.Errorf("step %d, %s: %w", i+1, s.title, err)
		}
	}
	fmt.Printf("\nAll %d steps had their effect.\n", len(steps))
	return nil
}

// stay keeps the cluster and the manager running until Ctrl-C.
func (d *demo) stay(ctx context.Context, page bool) error {
	sandbox := filepath.Join(d.bin, "sandbox")
	fmt.Printf(`
%s In another terminal:
  export KUBECONFIG=%s
  alias kubectl='%s kubectl --data-dir %s'   # if you have none
  kubectl get nodepools --watch
  %s nodes add --data-dir %s --pool gpu --count 3
A page of it all, in the browser:
  %s dashboard
The log of the manager is %s.
Press Ctrl-C to stop it all.
`, bold("The cluster and the manager stay up."), d.kubeconfig(), sandbox, d.dataDir(), sandbox, d.dataDir(), filepath.Join(d.bin, "kubectl-tide"), d.logFile())
	if page {
		if err := d.openPage(); err != nil {
			return err
		}
	}
	select {
	case <-ctx.Done():
		return nil
	case <-d.manager.Done():
		return fmt.Errorf("the manager has exited: see %s", d.logFile())
	}
}

// bold makes a string bold if the standard output is a terminal.
func bold(text string) string {
	if info, err := os.Stdout.Stat(); err != nil || info.Mode()&os.ModeCharDevice == 0 || os.Getenv("NO_COLOR") != "" {
		return text
	}
	return "\x1b[1m" + text + "\x1b[0m"
}
