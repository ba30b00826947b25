// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// turnsVariable is the environment variable with the path of the socket of turns.
const turnsVariable = "TIDEKEEPER_TURNS"

// turns lets the processes of suites ask the admission as well, for a part of a suite that keeps
// processors busy, such as a shard of e2e or a test with a sandbox of its own. A process connects to
// a Unix socket, and writes the time over which the idle share is measured as a line, such as "2s".
// It may begin when it reads a line, and closes the connection at the end of the part.
type turns struct {
	admission *admission
	listener  net.Listener
	dir       string
	serving   sync.WaitGroup
	stop      context.CancelFunc
}

// serveTurns starts to serve turns. The caller must call close.
func serveTurns(ctx context.Context, a *admission) (*turns, error) {
	dir, err := os.MkdirTemp("", "turns-")
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("unix", filepath.Join(dir, "socket"))
	if err != nil {
		_ = os.RemoveAll(dir) // It is empty.
		return nil, err
	}
	ctx, stop := context.WithCancel(ctx)
	t := &turns{admission: a, listener: listener, dir: dir, stop: stop}
	t.serving.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			t.serving.Go(func() { t.serve(ctx, conn) })
		}
	})
	return t, nil
}

// serve gives one part its turn. The part has ended when its connection has, also if its process was
// killed.
func (t *turns) serve(ctx context.Context, conn net.Conn) {
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	defer conn.Close()
	var text string
	if _, err := fmt.Fscanln(conn, &text); err != nil {
		return
	}
	window, err := time.ParseDuration(text)
	if err != nil || window <= 0 {
		return
	}
	waiting, ended := context.WithCancel(ctx)
	defer ended()
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		_, _ = conn.Read(make([]byte, 1)) // It ends with the connection.
		ended()
	}()
	t.admission.enter(waiting, window)
	defer t.admission.leave()
	if _, err := fmt.Fprintln(conn, "begin"); err == nil {
		<-gone
	}
}

// environment returns the environment variable for the processes of suites.
func (t *turns) environment() string {
	return turnsVariable + "=" + t.listener.Addr().String()
}

// close ends all turns.
func (t *turns) close() {
	t.stop()
	_ = t.listener.Close()
	t.serving.Wait()
	_ = os.RemoveAll(t.dir)
}
