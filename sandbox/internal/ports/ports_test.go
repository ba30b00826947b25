// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package ports

import (
	"context"
	"net"
	"strconv"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

func listen(number int, share bool) (net.Listener, error) {
	config := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) error {
		var err error
		if share {
			if controlErr := c.Control(func(fd uintptr) {
				err = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEPORT, 1)
			}); controlErr != nil {
				return controlErr
			}
		}
		return err
	}}
	return config.Listen(context.Background(), "tcp4", net.JoinHostPort(Loopback, strconv.Itoa(number)))
}

func release(t *testing.T, p *Port) {
	t.Helper()
	if err := p.Release(); err != nil {
		t.Errorf("release port %d: %v", p.Number(), err)
	}
}

func TestReservedPortIsForItsOwnerOnly(t *testing.T) {
	p, err := Reserve(0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { release(t, p) })
	if l, err := listen(p.Number(), false); err == nil {
		l.Close()
		t.Error("another process could take the port")
	}
	for range 2 { // The port stays reserved while its owner restarts.
		l, err := listen(p.Number(), true)
		if err != nil {
			t.Fatalf("its owner cannot listen: %v", err)
		}
		l.Close()
	}
}

// TestPreferredPortOfTwo checks that concurrent callers that prefer the same port get different
// ports.
func TestPreferredPortOfTwo(t *testing.T) {
	first, err := Reserve(0)
	if err != nil {
		t.Fatal(err)
	}
	number := first.Number()
	release(t, first)
	for range 200 {
		var wg sync.WaitGroup
		var mu sync.Mutex
		var got []*Port
		for range 8 {
			wg.Go(func() {
				p, err := Reserve(number)
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				defer mu.Unlock()
				got = append(got, p)
			})
		}
		wg.Wait()
		numbers := map[int]bool{}
		for _, p := range got {
			numbers[p.Number()] = true
			release(t, p)
		}
		if len(numbers) != len(got) {
			t.Fatalf("%d reservations have %d ports", len(got), len(numbers))
		}
	}
}

func TestPreferredPort(t *testing.T) {
	p, err := Reserve(0)
	if err != nil {
		t.Fatal(err)
	}
	q, err := Reserve(p.Number())
	if err != nil {
		t.Fatal(err)
	}
	if q.Number() == p.Number() {
		t.Error("a port was reserved twice")
	}
	release(t, q)
	release(t, p)
	again, err := Reserve(p.Number())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { release(t, again) })
	if again.Number() != p.Number() {
		t.Errorf("got port %d, want the preferred %d, which is free", again.Number(), p.Number())
	}
}
