// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package incluster

import (
	"context"
	"errors"
	"io"
	"net"
	"os/exec"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
)

// handed returns a network that this process has created and sent to itself.
func handed(t *testing.T) *Network {
	t.Helper()
	cmd := &exec.Cmd{}
	number, passed, other, err := pass(cmd)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if number != "3" {
		t.Errorf("the process finds the socket at %s, want 3", number)
	}
	fd, err := unix.Dup(int(passed.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	passed.Close()
	if err := handOver(fd, "127.0.0.1:0", nil); err != nil {
		t.Fatal(err)
	}
	n, err := handedFrom(other, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(n.Close)
	return n
}

// said returns the text that the peer sends on a connection.
func said(t *testing.T, c net.Conn, err error) string {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	text, err := io.ReadAll(c)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// say accepts a listener's connections and sends text on each of them.
func say(text string, l net.Listener) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		_, _ = io.WriteString(c, text)
		_ = c.Close()
	}
}

func TestNetworkOut(t *testing.T) {
	n := handed(t)
	go say("the API server", n.API())
	c, err := net.Dial("tcp", n.API().Addr().String())
	if got := said(t, c, err); got != "the API server" {
		t.Errorf("got %q", got)
	}
	n.Close()
	if c, err := net.Dial("tcp", n.API().Addr().String()); err == nil {
		c.Close()
		t.Error("it can be reached when the process has ended")
	}
}

// TestNetworkIn checks that Dial fails until the program listens, and then succeeds regardless of
// the number of earlier and concurrent connections.
func TestNetworkIn(t *testing.T) {
	const many = 200
	n := handed(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().(*net.TCPAddr)
	l.Close()
	for range many {
		if c, err := n.Dial(t.Context(), address.Port); err == nil {
			c.Close()
			t.Fatal("no one listens, and it was reached")
		}
	}
	if l, err = net.Listen("tcp", address.String()); err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go say("the program", l)
	for i := range many {
		c, err := n.Dial(t.Context(), address.Port)
		if got := said(t, c, err); got != "the program" {
			t.Fatalf("connection %d: got %q", i, got)
		}
	}
	open := make(chan net.Conn, many)
	var dialing sync.WaitGroup
	for i := range many {
		dialing.Go(func() {
			c, err := n.Dial(t.Context(), address.Port)
			if err != nil {
				t.Errorf("connection %d of those at once: %v", i, err)
				return
			}
			open <- c
		})
	}
	dialing.Wait()
	close(open)
	for c := range open {
		if got := said(t, c, nil); got != "the program" {
			t.Errorf("of those at once: got %q", got)
		}
	}
	n.Close()
	if _, err := n.Dial(t.Context(), address.Port); !errors.Is(err, net.ErrClosed) {
		t.Errorf("got %v of a network that is closed", err)
	}
}

func TestNetworkOfAProcessThatEnds(t *testing.T) {
	_, passed, other, err := pass(&exec.Cmd{})
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	passed.Close()
	if _, err := handedFrom(other, nil); err == nil || err.Error() != "it has not made its network" {
		t.Errorf("got %v", err)
	}
}

func TestDialIsGivenUp(t *testing.T) {
	n := handed(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	// The connection may be refused before the canceled context is noticed, so accept any error.
	if c, err := n.Dial(ctx, 1); err == nil {
		c.Close()
		t.Error("it was reached")
	}
}
