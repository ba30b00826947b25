// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package socket

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"
	"testing"
	"time"
)

// TestListen checks that only this user can write to a socket. Files that the process creates at
// the same time must have their requested modes, because Listen does not change the umask.
func TestListen(t *testing.T) {
	before := umask()
	dir := t.TempDir()
	var listening, all sync.WaitGroup
	over := make(chan struct{})
	all.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-over:
				return
			default:
			}
			other := filepath.Join(dir, fmt.Sprintf("dir-%d", i))
			if err := os.Mkdir(other, 0o700); err != nil {
				t.Error(err)
			} else if got := modeOf(t, other); got != 0o700 {
				t.Errorf("a directory that is made meanwhile has the mode %o", got)
				return
			}
		}
	})
	for side := range 6 {
		listening.Go(func() {
			for i := range 50 {
				path := filepath.Join(dir, fmt.Sprintf("%d-%d.sock", side, i))
				listener, err := Listen(t.Context(), path)
				if err != nil {
					t.Error(err)
					return
				}
				if got := modeOf(t, path); got != mode {
					t.Errorf("the socket has the mode %o", got)
				}
				if err := listener.Close(); err != nil {
					t.Error(err)
				}
				if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
					t.Errorf("the socket is left: %v", err)
				}
			}
		})
	}
	listening.Wait()
	close(over)
	all.Wait()
	if after := umask(); after != before {
		t.Errorf("the umask was %o and is %o", before, after)
	}
}

// TestAnotherUser checks that another user cannot connect to a socket.
func TestAnotherUser(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can be another user")
	}
	dir, err := os.MkdirTemp("/tmp", "socket-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "socket")
	listener, err := Listen(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	if err := dialAs(t.Context(), 65534, path); !errors.Is(err, syscall.EACCES) {
		t.Errorf("another user: %v", err)
	}
	if err := dialAs(t.Context(), 0, path); err != nil {
		t.Errorf("this user: %v", err)
	}
}

// dialAs connects to a socket as the user with the given ID.
func dialAs(ctx context.Context, user int, path string) error {
	result := make(chan error)
	go func() {
		// Never unlock the thread, so that it ends with the goroutine and no other code runs as
		// this user.
		runtime.LockOSThread()
		if err := syscall.Setfsuid(user); err != nil {
			result <- err
			return
		}
		ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
		defer cancel()
		connection, err := (&net.Dialer{}).DialContext(ctx, "unix", path)
		if err == nil {
			err = connection.Close()
		}
		result <- err
	}()
	return <-result
}

func umask() int {
	now := syscall.Umask(0)
	syscall.Umask(now)
	return now
}

func modeOf(t *testing.T, path string) os.FileMode {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Error(err)
		return 0
	}
	return info.Mode().Perm()
}
