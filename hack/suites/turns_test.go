// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// TestTurns checks that a part of a suite begins when the processors idle, and that its turn ends with
// its connection.
func TestTurns(t *testing.T) {
	t.Parallel()
	var idle atomic.Uint64
	a := &admission{times: busyWithout(&idle)}
	served, err := serveTurns(t.Context(), a)
	if err != nil {
		t.Fatal(err)
	}
	defer served.close()
	_, socket, _ := strings.Cut(served.environment(), "=")
	ask := func(window string) (net.Conn, <-chan error) {
		conn, err := net.Dial("unix", socket)
		if err != nil {
			t.Fatal(err)
		}
		began := make(chan error, 1)
		go func() {
			_, err := bufio.NewReader(conn).ReadString('\n')
			began <- err
		}()
		if _, err := fmt.Fprintln(conn, window); err != nil {
			t.Fatal(err)
		}
		return conn, began
	}
	within := func(what string, began <-chan error) {
		select {
		case err := <-began:
			if err != nil {
				t.Fatalf("%s: %v", what, err)
			}
		case <-time.After(time.Minute):
			t.Fatal(what + " waits")
		}
	}
	first, began := ask("1ms")
	within("the first part", began)
	if a.running.Load() != 1 {
		t.Errorf("%d parts run, want 1", a.running.Load())
	}
	given, _ := ask("1h") // It waits for the first, until it gives up.
	_ = given.Close()
	second, began := ask("1ms")
	idle.Store(50)
	within("a part, while processors idle,", began)
	idle.Store(0)
	third, began := ask("1h")
	_, _ = first.Close(), second.Close()
	within("a part, when the others have ended,", began)
	_ = third.Close()
	if err := wait.PollUntilContextTimeout(t.Context(), time.Millisecond, time.Minute, true, func(context.Context) (bool, error) { return a.running.Load() == 0, nil }); err != nil {
		t.Errorf("%d parts run after all connections ended", a.running.Load())
	}
	for _, window := range []string{"soon", "-1s", "0s"} {
		if _, refused := ask(window); <-refused == nil {
			t.Errorf("%q is accepted as a window", window)
		}
	}
}
