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

// Output keeps the end of what all processes of a run write, and finds in all of it what must not
// be there.
type Output struct {
	mu sync.Mutex
	// kept is the end, at most twice mostOutput.
	kept   []byte
	failed []string
	// trace looks for the place of the failure that came last; nil: it is not looked for.
	trace *trace
	// line is the output since the last end of a line, at most longestLine.
	line []byte
	Fail *regexp.Regexp
}

const (
	// mostOutput is how much of the end of a run's output is kept at least.
	mostOutput = 2 << 20
	// longestLine bounds what is looked at as one line: a program may write without any ends of lines.
	longestLine = 64 << 10
	// mostFailed is how many lines that must not be there are kept. One is enough for a finding.
	mostFailed = 100
)

// panics are lines with which a process ends that has failed.
var panics = regexp.MustCompile(`^(panic: |fatal error: |WARNING: DATA RACE|Traceback \(most recent call last\)|thread '.*' panicked at|Exception in thread )|"msg":"(Observed a panic|recovered from panic)|Observed a panic`)

// Write takes output. It never fails.
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

// look notes a line that must not be there.
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

// locate adds to a failure where it came from, if a line says that.
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

// Tracing reports whether there is a panic of which it may still be written where it came from.
func (o *Output) Tracing() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.trace != nil && time.Since(o.trace.began) < traced
}

// Failures returns the lines that must not be there.
func (o *Output) Failures() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return append([]string(nil), o.failed...)
}

// Tail returns the last lines of the output.
func (o *Output) Tail(lines int) []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	all := strings.Split(strings.TrimRight(string(o.kept), "\n"), "\n")
	return all[max(0, len(all)-lines):]
}

// lastWords is how many lines a process has written last that tell why it has ended.
const lastWords = 3

// LastWritten is between the end of a process and its last output.
const LastWritten = ", after it wrote: "

// lastOf describes the end of a process, with its last output.
func (o *Output) lastOf(end string) string {
	lines := slices.DeleteFunc(o.Tail(lastWords), func(line string) bool { return strings.TrimSpace(line) == "" })
	if len(lines) == 0 {
		return end
	}
	return end + LastWritten + strings.Join(lines, " / ")
}
