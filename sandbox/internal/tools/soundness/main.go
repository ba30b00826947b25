// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Command soundness runs explore and fuzz on pairs of small operators. Both operators of a pair
// behave the same, except that one has a known bug and its twin does not. The command prints a
// Markdown table of the findings for test/findings.md, with wrong verdicts first.
//
//	soundness [--jobs N] DIR [PAIR...]
//
// The exit code is 1 unless every bug is found and no twin has a finding. Pairs that begin in the
// same state share their sandboxes. This program contains the complete sandbox command, so that the
// pairs can share sandboxes within its process.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"tidekeeper.dev/tidekeeper/sandbox/internal/cli"
	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/lab"
	"tidekeeper.dev/tidekeeper/sandbox/internal/programs"
	"tidekeeper.dev/tidekeeper/sandbox/test/soundness"
)

func main() {
	if main := programs.Lookup(filepath.Base(os.Args[0])); main != nil {
		os.Exit(main())
	}
	cli.Silence()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	flags := flag.NewFlagSet("soundness", flag.ExitOnError)
	jobs := flags.Int("jobs", cli.Side(), "how many pairs play side by side; by default two for each processor, if there is 1 GiB of memory for each")
	_ = flags.Parse(os.Args[1:]) // flag.ExitOnError is set, so Parse returns no error.
	if flags.NArg() == 0 || *jobs < 1 {
		return errors.New("want [--jobs N] DIR [PAIR...]")
	}
	dir, err := filepath.Abs(flags.Arg(0))
	if err != nil {
		return err
	}
	pairs, err := chosen(flags.Args()[1:])
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return err
	}
	p := soundness.Player{Operators: filepath.Join(dir, "operators"), Dir: dir}
	build := exec.CommandContext(ctx, "go", "build", "-o", p.Operators, "./test/soundness/operators")
	build.Stdout, build.Stderr = os.Stderr, os.Stderr
	if err := build.Run(); err != nil {
		return fmt.Errorf("build the operators: %w", err)
	}
	// Keep some idle sandboxes in addition to the sandboxes of the jobs, because pairs that begin
	// in different states cannot share a sandbox.
	labs, err := lab.NewLabs(dir, 1+*jobs/2)
	if err != nil {
		return err
	}
	defer labs.Close()
	p.Sandbox = func(ctx context.Context, args []string, out, progress io.Writer) (int, error) {
		return cli.Play(ctx, labs, args, out, progress), nil
	}
	began := time.Now()
	results := play(ctx, &p, pairs, *jobs)
	if ctx.Err() != nil {
		return errors.New("interrupted")
	}
	soundness.Table(os.Stdout, results)
	sound := soundness.Sum(os.Stdout, results)
	fmt.Printf("in %s, %d pairs side by side\n", time.Since(began).Round(time.Second), *jobs)
	if !sound {
		return errors.New("not every verdict is right: the reports are in " + dir)
	}
	return nil
}

// play runs pairs in parallel, and returns their results.
func play(ctx context.Context, p *soundness.Player, pairs []soundness.Pair, jobs int) []soundness.Result {
	results := make([]soundness.Result, len(pairs))
	var playing errgroup.Group
	playing.SetLimit(jobs)
	var mu sync.Mutex
	began, over := time.Now(), 0
	for i, pair := range pairs {
		playing.Go(func() error {
			if ctx.Err() != nil {
				return nil
			}
			results[i] = p.Play(ctx, pair)
			mu.Lock()
			defer mu.Unlock()
			over++
			rest := time.Duration(float64(time.Since(began)) / float64(over) * float64(len(pairs)-over))
			fmt.Fprintf(os.Stderr, "[%d of %d, %s to go] %s (%s)\n", over, len(pairs), rest.Round(time.Second), results[i].Short(),
				(results[i].Wrong.Took + results[i].Right.Took).Round(time.Second))
			return nil
		})
	}
	_ = playing.Wait()
	return results
}

// chosen returns the pairs with the given names, or all pairs if there are no names.
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
