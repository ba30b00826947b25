// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"hash/fnv"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"tidekeeper.dev/tidekeeper/sandbox/internal/realnode"
)

// longestSocket is the maximum length in bytes of the path of a socket in the data directory. It is
// less than the kernel's limit of 107 bytes.
const longestSocket = 100

// sockets computes the paths of the Unix sockets of the sandbox in the data directory dir.
type sockets struct{ dir string }

// control returns the path of the socket on which the sandbox accepts commands from other processes
// of the same user.
func (s sockets) control() string { return s.path("control.sock") }

// kubelets returns the path of the socket for the API server's connections to simulated kubelets.
func (s sockets) kubelets() string { return s.path("kubelets.sock") }

// program returns the path of the socket for connections to a program that runs as a pod.
func (s sockets) program() string { return s.path("program.sock") }

// node returns the path of the socket of the real node with the given number. The socket accepts
// tunnels to the node and requests to import images.
func (s sockets) node(number int) string {
	return s.path(filepath.Join("nodes", realnode.Name(number), "node.sock"))
}

// path returns the path of a socket in the data directory. If that path would be too long, the
// socket is in a private directory of this user below /tmp.
func (s sockets) path(name string) string {
	path := filepath.Join(s.dir, name)
	if len(path) <= longestSocket {
		return path
	}
	sum := fnv.New64a()
	sum.Write([]byte(path))
	return filepath.Join("/tmp", fmt.Sprintf("tidekeeper-sandbox-%d", os.Getuid()), fmt.Sprintf("%x.sock", sum.Sum64()))
}

// makePrivate creates a directory in a place that every user can write to, such as /tmp. It rejects
// an existing directory that belongs to another user or that others can write to, because they
// could replace a socket in it.
func makePrivate(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	var s unix.Stat_t
	if err := unix.Lstat(dir, &s); err != nil {
		return err
	}
	if int(s.Uid) != os.Getuid() || s.Mode&0o022 != 0 {
		return fmt.Errorf("%s belongs to another user, or other users can write to it: give a --data-dir with a shorter name", dir)
	}
	return nil
}
