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

// Pair is a mistake, and how it is looked for.
type Pair struct {
	// Name is that of the operators, and Mistake says what the wrong one does.
	Name, Mistake string
	// Oracle and Says are in the headline of what is found and in the lines below it.
	Oracle, Says string
	// Steps are those of the workload, with what else it has; Edits in their place are what fuzz
	// plays. Faults are parts of the names of what explore plays.
	Steps  string
	Edits  []string
	Faults []string
	// Install is a manifest that is installed, too.
	Install string
	// Flags are more flags of explore or fuzz, and Env are variables of the operator.
	Flags, Env []string
	// Undisturbed: it is found without a fault, so none need take effect.
	Undisturbed bool
}

// Player plays pairs.
type Player struct {
	// Sandbox runs 'sandbox explore' or 'sandbox fuzz' with these arguments until the context ends,
	// which interrupts it, and returns its exit code.
	Sandbox func(ctx context.Context, args []string, out, progress io.Writer) (int, error)
	// Operators is the program, and Dir is where results are kept.
	Operators, Dir string
}

// Program runs a sandbox that is a program.
func Program(path string) func(context.Context, []string, io.Writer, io.Writer) (int, error) {
	return func(ctx context.Context, args []string, out, progress io.Writer) (int, error) {
		sandbox := exec.CommandContext(ctx, path, args...)
		// Interrupted, it stops its sandboxes and reports.
		sandbox.Cancel = func() error { return sandbox.Process.Signal(os.Interrupt) }
		sandbox.WaitDelay = time.Minute
		sandbox.Stdout, sandbox.Stderr = out, progress
		if err := sandbox.Run(); sandbox.ProcessState == nil {
			return 0, err
		}
		return sandbox.ProcessState.ExitCode(), nil
	}
}

// Outcome is what came of an operator of a pair.
type Outcome struct {
	// Found are the headlines of what was found; As is the one that names the mistake.
	Found []string
	As    string
	// Played and Reached are how many faults or edits were, and took effect.
	Played, Reached int
	Took            time.Duration
	// Report is that of explore or fuzz, after what it said meanwhile.
	Report string
	// Err is why there is no verdict.
	Err error
}

// Result is what came of a pair.
type Result struct {
	Pair
	Wrong, Right Outcome
}

// OK reports whether the mistake was found, and nothing in its twin, though it met faults.
func (r *Result) OK() bool {
	return r.Wrong.As != "" && r.Right.Err == nil && len(r.Right.Found) == 0 && (r.Right.Reached > 0 || r.Undisturbed)
}

// Reports are those of both operators of a pair.
func (r *Result) Reports() string {
	return fmt.Sprintf("--- with the mistake:\n%s\n--- without it:\n%s\n", r.Wrong.Report, r.Right.Report)
}

// Play plays both operators of a pair.
func (p *Player) Play(ctx context.Context, pair Pair) Result {
	r := Result{Pair: pair}
	r.Wrong = p.play(ctx, pair, "mistake")
	r.Right = p.play(ctx, pair, "right")
	return r
}

//go:embed things.yaml
var definition string

// play plays the operator of a pair that makes the mistake, or the right one.
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
	args = append(args, p.Operators, "--"+which, pair.Name, "--starts", filepath.Join(dir, "starts"))
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

// search is what a sandbox says while it plays. When it has found the mistake of a pair for sure, the
// rest need not be played.
type search struct {
	pair  Pair
	found func()
	text  bytes.Buffer
	// told is how much of the text was looked at.
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

// names reports whether a finding with that title, and all that is said of it, names the mistake.
func (p *Pair) names(title, whole string) bool {
	return strings.Contains(title, p.Oracle) && strings.Contains(whole, p.Says)
}

// arguments writes what the sandbox reads, and returns its arguments up to the program. Little
// waits: what is measured is the verdict, and not how long a run may take. Steps are not left out,
// which would only take time.
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
	// headline is the title of a finding in a report; played and reached are numbers at its end.
	headline = regexp.MustCompile(`(?m)^(\d+)\. (.*)$`)
	played   = regexp.MustCompile(`(?m)^Played (\d+)`)
	reached  = regexp.MustCompile(`of which (\d+) (?:was|were) reached`)
)

// number is what is found of an expression.
func number(expression *regexp.Regexp, report string) int {
	n := 0
	if found := expression.FindStringSubmatch(report); found != nil {
		n, _ = strconv.Atoi(found[1])
	}
	return n
}

// read reads a report.
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
