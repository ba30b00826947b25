// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package soundness

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Pair describes a bug of an operator, and the faults or edits that reveal the bug. Two operators
// belong to each pair: an operator with the bug, and its twin without the bug.
type Pair struct {
	// Name selects the pair's operators; Mistake describes the incorrect behavior.
	Name, Mistake string
	// Oracle is a text that the headline of the finding must contain, such as the kind of check
	// that failed. Says is a text that the description of the finding must contain.
	Oracle, Says string
	// Steps contains the workload's steps for explore in YAML, possibly followed by other fields of
	// the workload. If Steps is empty, fuzz makes the edits that Edits names. Faults lists parts of
	// the names of the faults that explore injects.
	Steps  string
	Edits  []string
	Faults []string
	// Install is the YAML of an additional object to install, or empty.
	Install string
	// Flags lists additional flags of explore or fuzz; Env lists environment variables of the
	// operator.
	Flags, Env []string
	// Undisturbed is set if the bug shows even in a run without faults, so that no fault has to
	// take effect.
	Undisturbed bool
}

// Player runs explore or fuzz on the operators of pairs.
type Player struct {
	// Sandbox runs `sandbox explore` or `sandbox fuzz` with the given arguments, and returns the
	// exit code. It interrupts the command when the context is done.
	Sandbox func(ctx context.Context, args []string, out, progress io.Writer) (int, error)
	// Operators is the path of the compiled operators; Dir is the directory for results.
	Operators, Dir string
}

// Program returns an implementation of [Player.Sandbox] that starts the sandbox program at path.
func Program(path string) func(context.Context, []string, io.Writer, io.Writer) (int, error) {
	return func(ctx context.Context, args []string, out, progress io.Writer) (int, error) {
		sandbox := exec.CommandContext(ctx, path, args...)
		// After an interrupt, the command stops its sandboxes and writes its report.
		sandbox.Cancel = func() error { return sandbox.Process.Signal(os.Interrupt) }
		sandbox.WaitDelay = time.Minute
		sandbox.Stdout, sandbox.Stderr = out, progress
		if err := sandbox.Run(); sandbox.ProcessState == nil {
			return 0, err
		}
		return sandbox.ProcessState.ExitCode(), nil
	}
}

// Outcome is the result of running explore or fuzz on one operator of a pair.
type Outcome struct {
	// Found lists the headlines of all findings. As is the headline of the finding that matches the
	// pair's bug, or empty if there is none.
	Found []string
	As    string
	// Played counts the faults or edits that were tried. Reached counts how many of these took
	// effect.
	Played, Reached int
	Took            time.Duration
	// Report is the progress output of explore or fuzz, followed by its report.
	Report string
	// Err is the reason why there is no verdict, or nil.
	Err error
}

// Result is the result of both operators of a pair.
type Result struct {
	Pair
	Wrong, Right Outcome
}

// OK reports whether the bug was found, and the operator without the bug (the twin) had no
// findings. Unless the pair is Undisturbed, at least one fault or edit must have taken effect on
// the twin.
func (r *Result) OK() bool {
	return r.Wrong.As != "" && r.Right.Err == nil && len(r.Right.Found) == 0 && (r.Right.Reached > 0 || r.Undisturbed)
}

// Reports returns the reports of both operators.
func (r *Result) Reports() string {
	return fmt.Sprintf("--- with the mistake:\n%s\n--- without it:\n%s\n", r.Wrong.Report, r.Right.Report)
}

// Play runs explore or fuzz on both operators of a pair.
func (p *Player) Play(ctx context.Context, pair Pair) Result {
	r := Result{Pair: pair}
	r.Wrong = p.play(ctx, pair, "mistake")
	r.Right = p.play(ctx, pair, "right")
	return r
}

//go:embed things.yaml
var definition string

// play runs explore or fuzz on one operator of a pair: the operator with the bug if "which" is
// "mistake", or its twin without the bug if "which" is "right".
func (p *Player) play(ctx context.Context, pair Pair, which string) (o Outcome) {
	began := time.Now()
	defer func() { o.Took = time.Since(began) }()
	dir := filepath.Join(p.Dir, pair.Name, which)
	if o.Err = os.RemoveAll(dir); o.Err != nil {
		return o
	}
	if o.Err = os.MkdirAll(dir, 0o750); o.Err != nil {
		return o
	}
	args, err := pair.arguments(dir)
	if o.Err = err; err != nil {
		return o
	}
	args = append(args, "--")
	if len(pair.Env) > 0 {
		args = append(append(args, "env"), pair.Env...)
	}
	args = append(args, p.Operators, "--"+which, pair.Name, "--runs", filepath.Join(dir, "runs"))
	var report bytes.Buffer
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	progress := &search{pair: pair, found: stop}
	code, err := p.Sandbox(ctx, args, &report, progress)
	o.Err = errors.Join(
		err,
		os.WriteFile(filepath.Join(dir, "report.txt"), report.Bytes(), 0o600),
		os.WriteFile(filepath.Join(dir, "progress.txt"), progress.text.Bytes(), 0o600),
	)
	if code != 0 && code != 2 && o.Err == nil {
		o.Err = fmt.Errorf("exit code %d: %s", code, lastLine(progress.text.String()))
	}
	o.Report = progress.text.String() + report.String()
	o.read(report.String(), pair)
	return o
}

// search reads the progress output of explore or fuzz. It calls the function "found" as soon as a
// finding matches the pair's bug, because the remaining faults are then not needed.
type search struct {
	pair  Pair
	found func()
	text  bytes.Buffer
	// told is the number of bytes in text that have already been searched.
	told int
}

func (s *search) Write(text []byte) (int, error) {
	n, err := s.text.Write(text)
	for end := bytes.IndexByte(s.text.Bytes()[s.told:], '\n'); end >= 0; end = bytes.IndexByte(s.text.Bytes()[s.told:], '\n') {
		if _, title, is := strings.Cut(s.text.String()[s.told:s.told+end], ": FOUND: "); is && s.pair.names(title, title) {
			s.found()
		}
		s.told += end + 1
	}
	return n, err
}

// names reports whether a finding with the given title and complete description is the expected
// finding of the pair's bug.
func (p *Pair) names(title, whole string) bool {
	return strings.Contains(title, p.Oracle) && strings.Contains(whole, p.Says)
}

// arguments writes the input files of explore or fuzz to dir, and returns the command's arguments
// up to the operator's program. Waits are short, because the suite measures verdicts and not run
// times. To save time, explore does not search for steps that a finding does not need
// (--shrink=false).
func (p *Pair) arguments(dir string) ([]string, error) {
	var failed error
	write := func(name, text string) string {
		file := filepath.Join(dir, name)
		failed = errors.Join(failed, os.WriteFile(file, []byte(text), 0o600))
		return file
	}
	things := write("things.yaml", definition)
	var args []string
	only := p.Edits
	if p.Steps == "" {
		args = []string{"fuzz", "--nodes", "0", "--object", write("object.yaml", sample), "--install", things}
	} else {
		workload := "steps:\n" + p.Steps + "\ninstall: [" + things
		if p.Install != "" {
			workload += ", " + write("install.yaml", p.Install)
		}
		workload += "]\n"
		if !strings.Contains(p.Steps, "\nnodes:") {
			workload += "nodes: 0\n"
		}
		args = []string{"explore", "--shrink=false", "--workload", write("workload.yaml", workload)}
		only = p.Faults
	}
	args = append(args, "--dir", filepath.Join(dir, "results"), "--jobs", "1", "--quiet", "2s", "--patience", "10s")
	for _, part := range only {
		args = append(args, "--only", part)
	}
	return append(args, p.Flags...), failed
}

var (
	// headline matches a finding's headline in a report; played and reached match the counts at the
	// end of a report.
	headline = regexp.MustCompile(`(?m)^(\d+)\. (.*)$`)
	played   = regexp.MustCompile(`(?m)^Played (\d+)`)
	reached  = regexp.MustCompile(`of which (\d+) (?:was|were) reached`)
)

// number returns the number that the regular expression matches in the report, or 0 if there is no
// match.
func number(expression *regexp.Regexp, report string) int {
	n := 0
	if found := expression.FindStringSubmatch(report); found != nil {
		n, _ = strconv.Atoi(found[1])
	}
	return n
}

// read sets the fields of an outcome from a report.
func (o *Outcome) read(report string, pair Pair) {
	o.Played = number(played, report)
	if o.Reached = o.Played; reached.MatchString(report) {
		o.Reached = number(reached, report)
	}
	at := headline.FindAllStringSubmatchIndex(report, -1)
	for i, place := range at {
		end := len(report)
		if i+1 < len(at) {
			end = at[i+1][0]
		}
		title, whole := report[place[4]:place[5]], report[place[0]:end]
		o.Found = append(o.Found, title)
		if o.As == "" && pair.names(title, whole) {
			o.As = title
		}
	}
}

func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return lines[len(lines)-1]
}
