// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Command compile runs `go build` and shows its progress:
//
//	compile "Kubernetes" GOARCH=arm64 go build -o bin/sandbox ./cmd/sandbox
//
// Arguments of the form NAME=VALUE are set in the environment of the go command only. If the caller
// set them in its own environment, they would also apply to a "go run" of this command.
//
// On a terminal, compile updates a single line. In a log, it writes a line every half minute:
//
//	compiling Kubernetes: 1,432 of 2,768 packages, about 3 min left
//
// The counts cover only the packages that the go command has to compile, not the packages in its
// build cache.
package main

import (
	"bufio"
	"bytes"
	"cmp"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"
)

const (
	// quiet is the time before the first progress message, because most builds find everything in
	// the build cache and finish sooner.
	quiet = 4 * time.Second
	// moves is the interval between progress updates on a terminal; lines is the interval between
	// progress lines in a log.
	moves, lines = 500 * time.Millisecond, 30 * time.Second
)

func main() {
	var command []string
	if len(os.Args) > 2 {
		command = setVariables(os.Args[2:])
	}
	if len(command) < 2 || command[1] != "build" {
		fmt.Fprintln(os.Stderr, "usage: compile NAME [VARIABLE=VALUE …] go build ARGUMENTS")
		os.Exit(2)
	}
	if err := run(os.Args[1], command, os.Stderr); err != nil {
		fmt.Fprintf(os.Stderr, "compile %s: %v\n", os.Args[1], err)
		os.Exit(1)
	}
}

// setVariables sets the NAME=VALUE arguments at the beginning of args in the environment, and
// returns the remaining arguments.
func setVariables(args []string) []string {
	for len(args) > 0 {
		name, value, found := strings.Cut(args[0], "=")
		if !found {
			break
		}
		os.Setenv(name, value)
		args = args[1:]
	}
	return args
}

// run runs a go build command and writes its progress and its errors to out.
func run(name string, command []string, out *os.File) error {
	withNames := slices.Insert(slices.Clone(command), afterChdir(command), "-v")
	build := exec.Command(withNames[0], withNames[1:]...)
	build.Stdout = os.Stdout
	stderr, err := build.StderrPipe()
	if err != nil {
		return err
	}
	// Do not exit on Ctrl-C, which also reaches the go command. Wait until the go command has
	// removed its temporary files.
	signal.Notify(make(chan os.Signal, 1), os.Interrupt, syscall.SIGTERM)
	if err := build.Start(); err != nil {
		return err
	}
	output := make(chan string)
	go func() {
		defer close(output)
		scanner := bufio.NewScanner(stderr)
		scanner.Buffer(nil, 1<<20)
		for scanner.Scan() {
			output <- scanner.Text()
		}
	}()
	show(&progress{name: name, start: time.Now()}, output, command, out)
	return build.Wait()
}

// show reads the go command's output until it ends, and prints the progress of the build.
func show(p *progress, output <-chan string, command []string, out *os.File) {
	terminal := isTerminal(out)
	interval := lines
	if terminal {
		interval = moves
	}
	first := time.After(quiet)
	var stale chan int
	var tick <-chan time.Time
	for {
		select {
		case line, more := <-output:
			if !more {
				if terminal && tick != nil {
					fmt.Fprint(out, "\r\x1b[K")
				}
				return
			}
			if !p.read(line) {
				if terminal && tick != nil {
					fmt.Fprint(out, "\r\x1b[K")
				}
				fmt.Fprintln(out, line)
			}
		case <-first:
			stale = make(chan int, 1)
			p.counted = p.compiled
			go func() { stale <- countStale(command) }()
			tick = time.Tick(interval)
		case n := <-stale:
			p.stale, stale = n, nil
			p.write(out, terminal)
		case <-tick:
			p.write(out, terminal)
		}
	}
}

// progress is the state of a running build.
type progress struct {
	name       string
	start      time.Time
	downloaded int
	compiled   int
	// stale is the number of packages that remained to be compiled when they were counted, or 0 if
	// it is unknown; counted is the value of compiled at that time.
	counted, stale int
}

// read counts a line of the `go build -v` output. It returns false for a line that is not progress
// and must be printed, such as an error.
func (p *progress) read(line string) bool {
	switch {
	case strings.HasPrefix(line, "go: downloading "):
		p.downloaded++
	case line == "" || strings.ContainsAny(line, " \t#"):
		return false
	default:
		p.compiled++
	}
	return true
}

func (p *progress) write(out io.Writer, terminal bool) {
	line := p.line(time.Now())
	if terminal {
		fmt.Fprintf(out, "\r\x1b[K%s", line)
		return
	}
	fmt.Fprintln(out, line)
}

// line formats the progress of the build. The estimate assumes that each remaining package takes as
// long as the average compiled package.
func (p *progress) line(now time.Time) string {
	if p.compiled == 0 && p.downloaded > 0 {
		return fmt.Sprintf("compiling %s: %d modules downloaded", p.name, p.downloaded)
	}
	if p.stale == 0 {
		return fmt.Sprintf("compiling %s: %s packages so far", p.name, thousands(p.compiled))
	}
	total := max(p.counted+p.stale, p.compiled)
	if p.compiled == total {
		return fmt.Sprintf("compiling %s: all of %s packages, now linking", p.name, thousands(total))
	}
	text := fmt.Sprintf("compiling %s: %s of %s packages", p.name, thousands(p.compiled), thousands(total))
	if p.compiled*20 < total {
		return text // It is too early for a reliable estimate.
	}
	left := time.Duration(float64(now.Sub(p.start)) / float64(p.compiled) * float64(total-p.compiled))
	return text + ", about " + about(left) + " left"
}

// about formats a duration in minutes, or in tens of seconds if it is shorter than 90 seconds.
func about(d time.Duration) string {
	if d < 90*time.Second {
		return fmt.Sprintf("%d s", cmp.Or(int(d.Round(10*time.Second).Seconds()), 10))
	}
	return fmt.Sprintf("%d min", int(d.Round(time.Minute).Minutes()))
}

// thousands formats a number with thousands separators, such as 2,768.
func thousands(n int) string {
	if n < 1000 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%s,%03d", thousands(n/1000), n%1000)
}

// countStale returns the number of packages that the given "go build" command still has to compile,
// or 0 if the number is unknown.
func countStale(command []string) int {
	list := listCommand(command)
	out, err := exec.Command(list[0], list[1:]...).Output()
	if err != nil {
		return 0
	}
	return bytes.Count(out, []byte("true\n"))
}

// listCommand converts a "go build" command into a "go list" command that prints whether each
// package is stale.
func listCommand(build []string) []string {
	list := []string{build[0], "list"}
	at := afterChdir(build)
	list = append(list, build[2:at]...)
	list = append(list, "-deps", "-f={{.Stale}}")
	for rest := build[at:]; len(rest) > 0; rest = rest[1:] {
		switch flag, _, joined := strings.Cut(strings.TrimLeft(rest[0], "-"), "="); {
		case !strings.HasPrefix(rest[0], "-") || flag != "o" && flag != "ldflags":
			list = append(list, rest[0])
		case !joined && len(rest) > 1:
			rest = rest[1:] // Skip the value of the flag.
		}
	}
	return list
}

// afterChdir returns the index of the first argument after "go build" and the -C flag, which must
// be the first flag if it is given.
func afterChdir(command []string) int {
	switch {
	case len(command) > 3 && command[2] == "-C":
		return 4
	case len(command) > 2 && strings.HasPrefix(command[2], "-C="):
		return 3
	default:
		return 2
	}
}

func isTerminal(file *os.File) bool {
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0 && os.Getenv("TERM") != "dumb"
}
