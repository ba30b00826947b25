// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"bytes"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
)

// Output retains the end of the output of all operator processes in a run, and collects failures:
// panics, and lines that match Fail.
type Output struct {
	mu sync.Mutex
	// kept is the end of the output. It never exceeds twice mostOutput bytes.
	kept   []byte
	failed []string
	// trace searches the lines after a panic for the panic's origin. It is nil while no search is
	// in progress.
	trace *trace
	// line is the beginning of the current line, at most longestLine bytes.
	line []byte
	Fail *regexp.Regexp
}

const (
	// mostOutput is the number of bytes to which the retained output is truncated when it exceeds
	// twice that size.
	mostOutput = 2 << 20
	// longestLine is the maximum number of bytes of a line that are searched for failures. Programs
	// may write any amount of output without a newline.
	longestLine = 64 << 10
	// mostFailed is the maximum number of retained failures. A single failure is enough for a
	// finding.
	mostFailed = 100
)

// panics matches the first line of a panic or an unhandled exception, in several languages.
var panics = regexp.MustCompile(`^(panic: |fatal error: |WARNING: DATA RACE|Traceback \(most recent call last\)|thread '.*' panicked at|Exception in thread )|"msg":"(Observed a panic|recovered from panic)|Observed a panic`)

// Write implements [io.Writer] and never fails.
func (o *Output) Write(text []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.kept = append(o.kept, text...); len(o.kept) > 2*mostOutput {
		o.kept = bytes.Clone(o.kept[len(o.kept)-mostOutput:])
	}
	for rest := text; len(rest) > 0; {
		part, after, whole := bytes.Cut(rest, []byte("\n"))
		rest = after
		o.line = append(o.line, part[:min(len(part), longestLine-len(o.line))]...)
		if whole {
			o.look(o.line)
			o.line = o.line[:0]
		}
	}
	return len(text), nil
}

// look examines a line of output. It records the line if it reports a failure, and searches the
// lines after a panic for the panic's origin.
func (o *Output) look(line []byte) {
	panicked := panics.Match(line)
	switch {
	case len(o.failed) < mostFailed && (panicked || o.Fail != nil && o.Fail.Match(line)):
		o.failed = append(o.failed, strings.TrimSpace(string(line)))
		if o.trace = nil; panicked {
			o.trace = &trace{began: time.Now()}
			for _, frame := range framesIn(string(line)) {
				o.locate(frame)
			}
		}
	case o.trace != nil:
		o.locate(string(line))
	}
}

// locate appends a panic's origin to the last failure, as soon as a line of the stack trace
// contains the origin.
func (o *Output) locate(line string) {
	if o.trace == nil {
		return
	}
	if frame, found := o.trace.next(line); found {
		o.failed[len(o.failed)-1] += ", in " + frame
		o.trace = nil
	} else if o.trace.lines > mostFrames {
		o.trace = nil
	}
}

// Tracing reports whether the operator has panicked and may still be writing the stack trace.
func (o *Output) Tracing() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.trace != nil && time.Since(o.trace.began) < traced
}

// Failures returns a line for each panic so far, and each line that matches Fail.
func (o *Output) Failures() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return append([]string(nil), o.failed...)
}

// Tail returns the last lines of the output, at most as many as given.
func (o *Output) Tail(lines int) []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	all := strings.Split(strings.TrimRight(string(o.kept), "\n"), "\n")
	return all[max(0, len(all)-lines):]
}

// lastWords is the number of output lines that are reported with an exit status.
const lastWords = 3

// LastWritten is the text in reports between an exit status and the last lines of output that the
// process wrote before it exited.
const LastWritten = ", after it wrote: "

// lastOf appends the last lines of output to an exit status.
func (o *Output) lastOf(end string) string {
	lines := slices.DeleteFunc(o.Tail(lastWords), func(line string) bool { return strings.TrimSpace(line) == "" })
	if len(lines) == 0 {
		return end
	}
	return end + LastWritten + strings.Join(lines, " / ")
}
