// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"fmt"
	"strings"
	"testing"
)

// TestOutput checks that Output keeps the last lines of long output, and detects failures even if a
// line is written in several parts.
func TestOutput(t *testing.T) {
	o := &Output{}
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
	if got := strings.Join(o.Failures(), "|"); got != "panic: at first|panic: in the end" {
		t.Errorf("found %q", got)
	}
	if write(strings.Repeat(strings.Repeat("x", 1<<10)+"\n", 5<<10) + "the end\n"); o.Tail(1)[0] != "the end" {
		t.Errorf("the output ends with %q", o.Tail(1))
	}
	write(strings.Repeat("x", 20<<20))
	for range 2 * mostFailed {
		write("\npanic: again\n")
	}
	if cap(o.kept)+cap(o.line) > 30<<20 || len(o.Failures()) != mostFailed || cap(o.line) > 2*longestLine {
		t.Errorf("%d and %d bytes are kept, and %d lines", cap(o.kept), cap(o.line), len(o.Failures()))
	}
}

// TestWhereAPanicCameFrom checks that a panic is reported with its first stack frame outside the Go
// and Kubernetes libraries.
func TestWhereAPanicCameFrom(t *testing.T) {
	const inJSON = `{"level":"error","msg":"Observed a panic","panic":"runtime error: index out of range [0] with length 0","stacktrace":"goroutine 97 [running]:\nk8s.io/apimachinery/pkg/util/runtime.logPanic({0x1}, {0x2})\n\t/go/pkg/mod/k8s.io/apimachinery/pkg/util/runtime/runtime.go:107 +0xbc\npanic({0x1?, 0x2?})\n\t/usr/local/go/src/runtime/panic.go:785 +0x132\ngithub.com/acme/shop/internal/controller.(*ShopReconciler).size(...)\n\t/src/internal/controller/shop.go:42\ngithub.com/acme/shop/internal/controller.(*ShopReconciler).Reconcile({0x1})\n\t/src/internal/controller/shop.go:17 +0x1b"}`
	for _, tc := range []struct{ name, text, want string }{
		{"a panic", "panic: assignment to entry in nil map\n\ngoroutine 1 [running]:\nencoding/json.Unmarshal(0x1)\n\t/usr/local/go/src/encoding/json/decode.go:3 +0x1\nmain.(*operator).sync(0xc000, {0x1, 0x2})\n\t/src/sync.go:12 +0x65\nmain.main()\n\t/src/main.go:5 +0x1\nexit status 2\n",
			"panic: assignment to entry in nil map, in main.(*operator).sync (sync.go:12)"},
		{"one that was recovered", inJSON + "\n", strings.TrimSpace(inJSON) + ", in controller.(*ShopReconciler).size (shop.go:42)"},
		{"a module without a domain", "panic: a\n\ngoroutine 1 [running]:\nsigs.k8s.io/controller-runtime/pkg/internal/controller.(*Controller[...]).Reconcile({0x1})\n\t/m/controller.go:1 +0x1\nshop/controllers.Reconcile[...](0x1)\n\t/src/controllers/shop.go:7 +0x1\n",
			"panic: a, in controllers.Reconcile[...] (shop.go:7)"},
		{"one without a stack", "panic: a\nall is over\n", "panic: a"},
		{"a data race", "WARNING: DATA RACE\nWrite at 0x00c000 by goroutine 7:\n  runtime.mapassign()\n      /usr/local/go/src/runtime/map.go:1 +0x1\n  main.count()\n      /src/main.go:9 +0x2\n", "WARNING: DATA RACE, in main.count (main.go:9)"},
	} {
		o := &Output{}
		_, _ = o.Write([]byte(tc.text))
		if got := o.Failures(); len(got) != 1 || got[0] != tc.want {
			t.Errorf("%s: got %q, want %q", tc.name, got, tc.want)
		}
	}
	o := &Output{}
	if _, _ = o.Write([]byte("panic: a\n")); !o.Tracing() {
		t.Error("it is not waited for the stack")
	}
	if _, _ = o.Write([]byte("main.main()\n\t/src/main.go:5 +0x1\n")); o.Tracing() {
		t.Error("it is waited for the stack, which is there")
	}
}
