// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Command soundness plays small operators with a known mistake each, and their twins without it, and
// prints a table of what explore and fuzz found: a Markdown table for docs/explore.md.
//
//	soundness [--jobs N] PATH-OF-SANDBOX DIR [PAIR...]
//
// It ends with 1 unless each mistake is found, and no twin has an alarm.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"

	"golang.org/x/sync/errgroup"

	"tidekeeper.dev/tidekeeper/sandbox/test/soundness"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	jobs := flag.Int("jobs", 2, "how many pairs play side by side")
	flag.Parse()
	if flag.NArg() < 2 {
		return errors.New("want PATH-OF-SANDBOX DIR [PAIR...]")
	}
	dir, err := filepath.Abs(flag.Arg(1))
	if err != nil {
		return err
	}
	pairs, err := chosen(flag.Args()[2:])
	if err != nil {
		return err
	}
	p := soundness.Player{Sandbox: flag.Arg(0), Operators: filepath.Join(dir, "operators"), Dir: dir}
	build := exec.CommandContext(ctx, "go", "build", "-o", p.Operators, "./test/soundness/operators")
	build.Stdout, build.Stderr = os.Stderr, os.Stderr
	if err := build.Run(); err != nil {
		return fmt.Errorf("build the operators: %w", err)
	}
	results := make([]soundness.Result, len(pairs))
	playing, ctx := errgroup.WithContext(ctx)
	playing.SetLimit(max(1, *jobs))
	for i, pair := range pairs {
		playing.Go(func() error {
			results[i] = p.Play(ctx, pair)
			fmt.Fprint(os.Stderr, results[i].Line())
			return ctx.Err()
		})
	}
	if err := playing.Wait(); err != nil {
		return err
	}
	fmt.Print(soundness.Head)
	for i := range results {
		fmt.Print(results[i].Line())
	}
	if !soundness.Sum(os.Stdout, results) {
		return errors.New("not every verdict is right: the reports are in " + dir)
	}
	return nil
}

// chosen returns the pairs with these names, all if there is none.
func chosen(names []string) ([]soundness.Pair, error) {
	all := soundness.Pairs()
	if len(names) == 0 {
		return all, nil
	}
	var pairs []soundness.Pair
	for _, name := range names {
		i := slices.IndexFunc(all, func(p soundness.Pair) bool { return p.Name == name })
		if i < 0 {
			return nil, fmt.Errorf("there is no pair %q", name)
		}
		pairs = append(pairs, all[i])
	}
	return pairs, nil
}
