// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"
)

// trace searches the lines of output after a panic for the first stack frame in the program's own
// code.
type trace struct {
	// lines counts the lines searched since the panic. began is the time of the panic.
	lines int
	began time.Time
	// function is the function named in the previous line, if it belongs to the program itself.
	function string
}

const (
	// mostFrames is the maximum number of lines after a panic that are searched.
	mostFrames = 400
	// traced is the time allowed for writing a stack trace. It is shorter than the shortest quiet
	// time, so that no step ends before the trace is complete.
	traced = 500 * time.Millisecond
)

var (
	// called matches a function call in a Go stack trace. calls matches the next line, which
	// contains the file and the line number.
	called = regexp.MustCompile(`^([\w./~*()\[\]…-]*\w(?:\[[^\]]*\])?)\(.*\)$`)
	calls  = regexp.MustCompile(`^(\S+\.go):(\d+)( \+0x[0-9a-f]+)?$`)
)

// foreign lists the first path elements of packages that do not belong to the program itself: the
// standard library, and libraries of Kubernetes, Google and Uber.
var foreign = strings.Fields(`archive bufio bytes cmp compress container context crypto database debug embed encoding errors expvar flag fmt
	go hash html image index internal io iter log maps math mime net os panic path plugin reflect regexp runtime slices sort strconv strings
	structs sync syscall testing text time unicode unique unsafe vendor weak
	k8s.io sigs.k8s.io golang.org google.golang.org go.uber.org`)

// next examines the next line of output. If the line completes a stack frame of the program itself,
// it returns the frame as FUNCTION (FILE:LINE).
func (t *trace) next(line string) (frame string, found bool) {
	line = strings.TrimSpace(line)
	t.lines++
	if at := calls.FindStringSubmatch(line); at != nil && t.function != "" {
		return fmt.Sprintf("%s (%s:%s)", path.Base(t.function), path.Base(at[1]), at[2]), true
	}
	t.function = ""
	if match := called.FindStringSubmatch(line); match != nil && isOwn(match[1]) {
		t.function = match[1]
	}
	return "", false
}

// isOwn reports whether a function belongs to the program itself rather than to a library.
func isOwn(function string) bool {
	first, _, _ := strings.Cut(function, "/")
	if first == function {
		first, _, _ = strings.Cut(function, ".")
	}
	return !slices.Contains(foreign, first)
}

// framesIn returns the lines of a stack trace that is embedded in a single line, as in JSON logs.
// It returns nil if the line contains no stack trace.
func framesIn(line string) []string {
	if !strings.Contains(line, `\n`) {
		return nil
	}
	return strings.Split(strings.ReplaceAll(line, `\t`, "\t"), `\n`)
}
