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

// trace looks, in the lines that follow one of a panic, for the first frame of the program's own.
type trace struct {
	// lines is how many were looked at, since the panic came, which began it.
	lines int
	began time.Time
	// function is that of the line before, if it is the program's own.
	function string
}

const (
	// mostFrames is how many lines of a stack are looked at.
	mostFrames = 400
	// traced is how long the lines after a panic may take: less than the shortest time for which
	// nothing happens when all is at rest.
	traced = 500 * time.Millisecond
)

var (
	// called is a frame of a stack in Go: the function with its arguments, and in the next line where
	// it is.
	called = regexp.MustCompile(`^([\w./~*()\[\]…-]*\w(?:\[[^\]]*\])?)\(.*\)$`)
	calls  = regexp.MustCompile(`^(\S+\.go):(\d+)( \+0x[0-9a-f]+)?$`)
)

// foreign are the first parts of the packages that an operator is made of: those of Go, and those of
// Kubernetes, which call the operator.
var foreign = strings.Fields(`archive bufio bytes cmp compress container context crypto database debug embed encoding errors expvar flag fmt
	go hash html image index internal io iter log maps math mime net os panic path plugin reflect regexp runtime slices sort strconv strings
	structs sync syscall testing text time unicode unique unsafe vendor weak
	k8s.io sigs.k8s.io golang.org google.golang.org go.uber.org`)

// next takes the next line, and returns the frame when it is the program's own.
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

// isOwn reports whether a function is of the program itself.
func isOwn(function string) bool {
	first, _, _ := strings.Cut(function, "/")
	if first == function {
		first, _, _ = strings.Cut(function, ".")
	}
	return !slices.Contains(foreign, first)
}

// framesIn are the lines of a stack that a line has in it, as logs in JSON do.
func framesIn(line string) []string {
	if !strings.Contains(line, `\n`) {
		return nil
	}
	return strings.Split(strings.ReplaceAll(line, `\t`, "\t"), `\n`)
}
