// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// outlet is a stdout whose writes a test can make fail without SIGPIPE, which a closed pipe would
// cause. It is a datagram socket: writes fail while there is no receiver, and succeed again
// afterwards.
type outlet struct {
	stdout *os.File
	lines  lines
	dir    string
	opened int
	// receiver is nil while writes fail.
	receiver *net.UnixConn
}

func newOutlet(t *testing.T) *outlet {
	t.Helper()
	socket, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	// The socket is not in t.TempDir, whose path may be too long for a socket.
	dir, err := os.MkdirTemp("", "outlet-")
	if err != nil {
		t.Fatal(err)
	}
	o := &outlet{stdout: os.NewFile(uintptr(socket), "outlet"), lines: make(lines, 10000), dir: dir}
	t.Cleanup(func() {
		o.fail()
		o.stdout.Close()
		os.RemoveAll(dir)
	})
	o.work(t)
	return o
}

// work makes later writes succeed.
func (o *outlet) work(t *testing.T) {
	t.Helper()
	o.opened++
	address := &net.UnixAddr{Net: "unixgram", Name: filepath.Join(o.dir, fmt.Sprint(o.opened))}
	receiver, err := net.ListenUnixgram("unixgram", address)
	if err != nil {
		t.Fatal(err)
	}
	o.receiver = receiver
	go func() {
		buffer := make([]byte, 1<<16)
		for {
			n, err := receiver.Read(buffer)
			if err != nil {
				return
			}
			for line := range strings.Lines(string(buffer[:n])) {
				o.lines <- strings.TrimSuffix(line, "\n")
			}
		}
	}()
	if err := unix.Connect(int(o.stdout.Fd()), &unix.SockaddrUnix{Name: address.Name}); err != nil {
		t.Fatal(err)
	}
}

// fail makes later writes fail.
func (o *outlet) fail() {
	if o.receiver != nil {
		o.receiver.Close()
	}
	o.receiver = nil
}
