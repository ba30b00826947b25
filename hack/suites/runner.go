// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// runner runs several suites at the same time.
type runner struct {
	root      string // the root of the repository
	jobs      int    // number of suites that run at the same time, if the admission lets them
	admission *admission
	// flags are added to the flags of go test.
	flags []string
	// required lists the names of suites that must not be skipped: they fail if this machine cannot
	// run them, or lacks something for one of their tests.
	required []string
	// within is the time after which no further suite begins, counted from the call of run, or 0 if
	// all suites begin. Those that have not begun are skipped, or fail if they are required. Tests
	// with a sandbox or manager of their own, in suites that have begun, skip themselves then.
	within time.Duration
	screen *screen
	book   *book
	// env lists environment variables of all suites. run sets it.
	env []string

	building sync.Mutex
	built    map[string]error // the results of make targets
}

// untilVariable is the environment variable with the Unix time after which tests skip themselves.
const untilVariable = "TIDEKEEPER_TESTS_UNTIL"

// grace is the time that a suite has to exit after SIGTERM before it is killed.
const grace = 20 * time.Second

// run runs the given suites and returns a summary of their results.
func (r *runner) run(ctx context.Context, suites []suite) summary {
	start := time.Now()
	over := make(chan struct{})
	var watching sync.WaitGroup
	watching.Go(func() { r.showProgress(len(suites), start, over) })

	r.env = nil
	if r.within > 0 {
		r.admission.until = start.Add(r.within)
		r.env = append(r.env, fmt.Sprintf("%s=%d", untilVariable, r.admission.until.Unix()))
	}
	served, err := serveTurns(ctx, r.admission)
	if err != nil {
		r.book.print("parts of suites take no turns: %v", err)
	} else {
		defer served.close()
		r.env = append(r.env, served.environment())
	}
	ready := newQueue(max(1, r.jobs-1), slices.Clone(suites))
	var working sync.WaitGroup
	for range max(1, r.jobs) {
		working.Go(func() {
			for !ready.empty() {
				r.admission.enter(ctx, suiteWindow)
				s, ended, more := ready.next()
				if !more {
					r.admission.leave()
					return
				}
				r.play(ctx, s, start)
				ended()
				r.admission.leave()
			}
		})
	}
	working.Wait()
	close(over)
	watching.Wait()
	r.screen.clear()
	return r.book.summarize(time.Since(start))
}

// showProgress prints progress lines until the channel over is closed.
func (r *runner) showProgress(suites int, start time.Time, over <-chan struct{}) {
	tick := time.NewTicker(r.screen.interval())
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			r.screen.show(r.book.progress(suites, start))
		case <-over:
			return
		}
	}
}

// play builds what a suite needs and runs it, if this machine can and start is not too long ago.
func (r *runner) play(ctx context.Context, s suite, start time.Time) {
	if s.requires != nil {
		if reason := s.requires(); reason != "" {
			r.leaveOut(s, reason)
			return
		}
	}
	late := func() bool {
		if r.within == 0 || time.Since(start) < r.within {
			return false
		}
		r.leaveOut(s, fmt.Sprintf("it could not begin within %s: the machine is too slow, or its caches were empty", r.within))
		return true
	}
	if late() {
		return
	}
	if err := r.build(ctx, s.needs); err != nil {
		r.book.suiteEnded(s.name, "fail", 0, err.Error())
		return
	}
	if !late() {
		r.runSuite(ctx, s)
	}
}

// build builds make targets, unless they have been built, and returns the first error. One target is
// built at a time, because two may write the same files.
func (r *runner) build(ctx context.Context, targets []string) error {
	r.building.Lock()
	defer r.building.Unlock()
	if r.built == nil {
		r.built = map[string]error{}
	}
	var failed error
	for _, target := range targets {
		err, done := r.built[target]
		if !done {
			err = r.make(ctx, target)
			r.built[target] = err
		}
		failed = cmp.Or(failed, err)
	}
	return failed
}

// leaveOut records that a suite was not run for the given reason.
func (r *runner) leaveOut(s suite, reason string) {
	if slices.Contains(r.required, s.name) {
		r.book.suiteEnded(s.name, "fail", 0, "it is required, but "+reason)
		return
	}
	r.book.suiteEnded(s.name, "skip", 0, reason)
}

// make builds a target of the repository's Makefile.
func (r *runner) make(ctx context.Context, target string) error {
	command := r.command(ctx, append([]string{"make", "--no-print-directory"}, strings.Fields(target)...), nil)
	command.Stdout, command.Stderr = r.screen, r.screen
	if err := command.Run(); err != nil {
		return fmt.Errorf("make %s: %w", target, err)
	}
	return nil
}

// command returns a command whose entire process group is terminated when the context ends.
func (r *runner) command(ctx context.Context, args, env []string) *exec.Cmd {
	command := exec.CommandContext(ctx, args[0], args[1:]...)
	command.Dir, command.Env = r.root, append(os.Environ(), env...)
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	group := func(signal syscall.Signal) error { return syscall.Kill(-command.Process.Pid, signal) }
	command.Cancel = func() error {
		time.AfterFunc(grace, func() { _ = group(syscall.SIGKILL) })
		return group(syscall.SIGTERM)
	}
	command.WaitDelay = grace
	return command
}

// runSuite runs a suite and records its results in the book.
func (r *runner) runSuite(ctx context.Context, s suite) {
	if ctx.Err() != nil {
		r.book.suiteEnded(s.name, "fail", 0, "interrupted before it began")
		return
	}
	start := time.Now()
	s.packages = s.withoutExceptions(r.root)
	command := r.command(ctx, s.arguments(r.flags), append(s.environment(r.root+"/bin"), r.env...))
	in, out := io.Pipe()
	command.Stdout, command.Stderr = out, out
	done := make(chan error, 1)
	go func() { done <- r.book.read(s.name, in) }()
	failed := command.Run()
	_ = out.Close() // never fails
	failed = cmp.Or(failed, <-done)
	action, why := "pass", ""
	lacking, all := r.book.skipped(s.name)
	switch required := slices.Contains(r.required, s.name); {
	case failed != nil:
		action = "fail"
		if !r.book.hasFailure(s.name) {
			why = failed.Error() // The failure of a test already explains the exit status.
		}
	case required && len(lacking) > 0:
		action, why = "fail", "it is required, but this was skipped: "+strings.Join(lacking, "; ")
	case required && all:
		action, why = "fail", "it is required, but all of its tests were skipped"
	case all:
		action, why = "skip", "each of its tests was skipped"
	}
	used := 0.0
	if state := command.ProcessState; state != nil {
		used = (state.UserTime() + state.SystemTime()).Seconds()
	}
	r.book.add(result{test: test{suite: s.name}, action: action, seconds: time.Since(start).Seconds(), output: why, cpu: used})
}

// hasFailure reports whether any test or package of a suite has failed.
func (b *book) hasFailure(suite string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.ContainsFunc(b.ended, func(r result) bool { return r.suite == suite && r.action == "fail" })
}
