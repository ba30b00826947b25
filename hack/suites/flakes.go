// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"
)

// burn is the internal subcommand that keeps a processor busy.
const burn = "burn"

// rounds is the result of a sitting. A sitting is one run of make flakes; it runs each suite in
// several rounds.
type rounds struct {
	Date, Commit string
	Busy         int
	Suites       map[string]*suiteRounds
}

// suiteRounds counts a suite's rounds, the rounds without a failure (Clean), and the failures of
// each test.
type suiteRounds struct {
	Rounds, Clean int
	Failed        map[string]int `json:",omitempty"`
}

// flakes runs suites repeatedly while other processes keep the processors busy, to find flaky
// tests.
func flakes(ctx context.Context, args []string) error {
	o := newOptions("flakes")
	count := o.Int("rounds", 20, "how often each suite runs")
	busy := o.Int("busy", 8, "how many processes keep the processors busy")
	limit := o.Duration("for", 0, "begin no round after this time; 0 is no limit")
	file := o.String("record", "", "the file for the results, to which those of each sitting are added; a page beside it has their table")
	fewest := o.Int("fewest", 0, "of the suites run only N, which have the fewest rounds in the file; 0 is all")
	if err := o.Parse(args); err != nil {
		return err
	}
	if min(*count, *busy, *fewest) < 0 || *limit < 0 {
		return errors.New("--rounds, --busy, --fewest and --for are 0 or more")
	}
	if o.pattern != "" {
		*file = "" // A round with only some of the tests does not count as a round of the suite.
	}
	earlier, err := readSittings(*file)
	if err != nil {
		return err
	}
	if *count == 0 { // With --rounds=0, only print the results of earlier sittings.
		earlier.print(os.Stdout)
		if len(earlier) == 0 {
			return nil
		}
		return earlier.write(*file)
	}
	r, suites, err := o.runner(os.Stdout)
	if err != nil {
		return err
	}
	if *fewest > 0 {
		suites = earlier.fewest(suites, *fewest)
	}
	r.admission.times = nil // The processors are busy on purpose.
	// Go's cached test results must not replace a run.
	r.flags = append(r.flags, "-count=1")
	stop, err := keepBusy(*busy)
	if err != nil {
		return err
	}
	defer stop()
	start := time.Now()
	all := rounds{Date: start.UTC().Format(time.DateOnly), Commit: commit(*file, tablePath(*file)), Busy: *busy, Suites: map[string]*suiteRounds{}}
	for round := 1; round <= *count && ctx.Err() == nil && (*limit == 0 || time.Since(start) < *limit); round++ {
		r.book = newBook(r.screen)
		r.book.print("=== round %d of %d, beside %d busy processes", round, *count, *busy)
		s := r.run(ctx, suites)
		if ctx.Err() != nil {
			break // The results of an interrupted round are incomplete.
		}
		all.add(s)
		s.writeFailed(os.Stdout)
		all.print(os.Stdout)
		if *file != "" {
			if err := append(slices.Clone(earlier), all).write(*file); err != nil {
				return err
			}
		}
	}
	if len(all.Suites) == 0 {
		return errors.New("no round was completed")
	}
	append(earlier, all).print(os.Stdout)
	if all.failed() {
		return errFailed
	}
	return nil
}

// add adds the results of a round.
func (a rounds) add(s summary) {
	for _, r := range s.suites {
		if r.action == "skip" {
			continue
		}
		if a.Suites[r.suite] == nil {
			a.Suites[r.suite] = &suiteRounds{Failed: map[string]int{}}
		}
		a.Suites[r.suite].Rounds++
		if r.action == "pass" {
			a.Suites[r.suite].Clean++
		}
		if r.action == "fail" && r.output != "" {
			a.Suites[r.suite].Failed[r.output]++
		}
	}
	for _, r := range slices.Concat(s.failed, s.packages) {
		a.Suites[r.suite].Failed[r.String()]++
	}
}

func (a rounds) failed() bool {
	for _, s := range a.Suites {
		if len(s.Failed) > 0 {
			return true
		}
	}
	return false
}

// print prints each suite's number of rounds and each test's failures.
func (a rounds) print(out io.Writer) {
	fmt.Fprintf(out, "\n%s at %s, beside %d busy processes:\n", a.Date, a.Commit, a.Busy)
	for _, name := range slices.Sorted(maps.Keys(a.Suites)) {
		s := a.Suites[name]
		fmt.Fprintf(out, "  %-16s %d of %d rounds without a failure\n", name, s.Clean, s.Rounds)
		for _, test := range slices.Sorted(maps.Keys(s.Failed)) {
			fmt.Fprintf(out, "    failed %d times: %s\n", s.Failed[test], test)
		}
	}
}

// commit returns the short hash of the tested commit. It appends -dirty if tracked files other than
// the given files have changed. The given files are the results, which a sitting itself changes.
func commit(files ...string) string {
	out, err := exec.Command("git", "rev-parse", "--short", "HEAD").Output()
	if err != nil {
		return fmt.Sprintf("an unknown commit: %v", err)
	}
	name := strings.TrimSpace(string(out))
	args := []string{"status", "--porcelain", "--untracked-files=no", "--", "."}
	for _, file := range files {
		if file != "" {
			args = append(args, ":!"+file)
		}
	}
	if changed, err := exec.Command("git", args...).Output(); err != nil || len(changed) > 0 {
		name += "-dirty"
	}
	return name
}

// besideBusy runs a command while other processes keep the processors busy.
func besideBusy(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("busy", flag.ExitOnError)
	busy := flags.Int("busy", 8, "how many processes keep the processors busy")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() == 0 {
		return errors.New("name the command")
	}
	stop, err := keepBusy(*busy)
	if err != nil {
		return err
	}
	defer stop()
	command := exec.CommandContext(ctx, flags.Arg(0), flags.Args()[1:]...)
	command.Stdin, command.Stdout, command.Stderr = os.Stdin, os.Stdout, os.Stderr
	command.Cancel = func() error { return command.Process.Signal(os.Interrupt) }
	return command.Run()
}

// keepBusy starts processes that use the processors, and returns a function that kills these
// processes.
func keepBusy(count int) (stop func(), err error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	var commands []*exec.Cmd
	stop = func() {
		for _, c := range commands {
			_ = c.Process.Kill()
			_ = c.Wait()
		}
	}
	for range count {
		c := exec.Command(program, burn)
		if err := c.Start(); err != nil {
			stop()
			return nil, err
		}
		commands = append(commands, c)
	}
	return stop, nil
}

// burnUntilOrphaned uses a processor until the parent process has exited.
func burnUntilOrphaned() {
	for parent, x := os.Getppid(), 1.0; os.Getppid() == parent; {
		for range 1 << 22 {
			x *= 1.0000001
		}
		if x == 0 {
			return // never happens, but keeps the compiler from removing the loop
		}
	}
}
