// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := errors.New("want one of: run, flakes, busy, list")
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case "run":
			err = run(ctx, os.Args[2:])
		case "flakes":
			err = flakes(ctx, os.Args[2:])
		case "busy":
			err = besideBusy(ctx, os.Args[2:])
		case "list":
			list(os.Stdout)
			return
		case burn:
			burnUntilOrphaned()
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "suites:", err)
		os.Exit(1)
	}
}

// errFailed is the error for failed tests. Their failures have already been printed.
var errFailed = errors.New("tests failed")

// options holds the flags that the commands run and flakes share.
type options struct {
	*flag.FlagSet
	jobs          int
	pattern, must string
}

func newOptions(name string) *options {
	o := &options{FlagSet: flag.NewFlagSet(name, flag.ExitOnError)}
	o.IntVar(&o.jobs, "jobs", 3, "how many suites run at the same time, while processors are idle")
	o.StringVar(&o.pattern, "run", "", "run the tests only that match this regular expression")
	o.StringVar(&o.must, "require", os.Getenv("REQUIRE_SUITES"), "suites, separated by commas, that fail instead of being skipped")
	return o
}

// runner returns a runner configured by the flags, and the suites that the arguments name.
func (o *options) runner(out *os.File) (*runner, []suite, error) {
	suites, err := choose(o.Args())
	if err != nil {
		return nil, nil, err
	}
	if len(suites) == 0 {
		return nil, nil, errors.New("name the suites, or: fast, rest, all")
	}
	root, err := os.Getwd()
	if err != nil {
		return nil, nil, err
	}
	if !exists(filepath.Join(root, "test", "go.mod")) {
		return nil, nil, fmt.Errorf("%s is not the root of the repository", root)
	}
	r := &runner{root: root, jobs: o.jobs, admission: newAdmission(), screen: newScreen(out)}
	r.book = newBook(r.screen)
	if o.must != "" {
		r.required = strings.Split(o.must, ",")
	}
	if err := checkPattern(o.pattern); err != nil {
		return nil, nil, err
	}
	if o.pattern != "" {
		r.flags = append(r.flags, "-run="+o.pattern)
	}
	return r, suites, nil
}

// checkPattern checks, before any suite starts, that the pattern in the make variable RUN is valid
// for go test -run: each element between slashes must be a regular expression.
func checkPattern(pattern string) error {
	elements := []string{pattern}
	if !strings.ContainsAny(pattern, "([\\") {
		elements = strings.Split(pattern, "/")
	}
	for _, element := range elements {
		if _, err := regexp.Compile(element); err != nil {
			return fmt.Errorf("RUN='%s': %w", pattern, err)
		}
	}
	return nil
}

// run runs the chosen suites once and prints a summary.
func run(ctx context.Context, args []string) error {
	o := newOptions("run")
	file := o.String("record", "", "the file for the results, for docs/reference/kubernetes.md")
	within := o.Duration("within", 0, "begin no further suite after this time, and say so (default: all suites begin)")
	release := o.String("kubernetes", "", "the release of Kubernetes that the record names, such as v1.34.4")
	if err := o.Parse(args); err != nil {
		return err
	}
	if *within < 0 {
		return fmt.Errorf("--within=%s: want a time that is left, such as 1h", *within)
	}
	r, suites, err := o.runner(os.Stdout)
	if err != nil {
		return err
	}
	r.within = *within
	s := r.run(ctx, suites)
	s.write(os.Stdout)
	if *file != "" {
		if err := newRecord(*release, time.Now(), s).write(*file); err != nil {
			return err
		}
	}
	switch {
	case !s.ok():
		return errFailed
	case o.pattern != "" && len(s.passed)+len(s.skipped) == 0:
		return fmt.Errorf("no test of %s matches %s", strings.Join(o.Args(), " "), o.pattern)
	}
	return nil
}

// list prints the suites of each tier, with the commands that they run.
func list(out io.Writer) {
	for _, tier := range []string{fast, rest, others} {
		fmt.Fprintf(out, "%s:\n", tier)
		for _, s := range tiers[tier] {
			fmt.Fprintf(out, "  %-16s %s\n", s.name, strings.Join(s.arguments(nil), " "))
		}
	}
}
