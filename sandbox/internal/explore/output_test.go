// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"fmt"
	"strings"
	"testing"
)

// What a process has written last is its last lines, however much it has written, and what must not
// be there is found anywhere, however the writes cut the lines.
func TestOutput(t *testing.T) {
	o := &output{}
	write := func(text string) {
		if n, err := o.Write([]byte(text)); n != len(text) || err != nil {
			t.Fatalf("wrote %d of %d: %v", n, len(text), err)
		}
	}
	write("pan")
	write("ic: at first\nonly")
	for i := range 200_000 {
		write(fmt.Sprintf("a line of a program that has much to say, number %d\n", i))
	}
	write("panic: in the end\n")
	if got, want := o.lastOf("exit status 2"), "exit status 2, after it wrote: a line of a program that has much to say, number 199998 / a line of a program that has much to say, number 199999 / panic: in the end"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got := strings.Join(o.failures(), "|"); got != "panic: at first|panic: in the end" {
		t.Errorf("found %q", got)
	}
	write(strings.Repeat("x", 20<<20))
	for range 2 * mostFailed {
		write("\npanic: again\n")
	}
	if cap(o.kept)+cap(o.line) > 30<<20 || len(o.failures()) != mostFailed || cap(o.line) > 2*longestLine {
		t.Errorf("%d and %d bytes are kept, and %d lines", cap(o.kept), cap(o.line), len(o.failures()))
	}
}
