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

// longestSocket is the maximum length of the path of a socket. The kernel's limit is little more than a
// hundred bytes.
const longestSocket = 100

// sockets are the paths of the sockets of a sandbox.
type sockets struct{ dir string }

// control is the socket for commands of other processes of the same user.
func (s sockets) control() string { return s.path("control.sock") }

// kubelets is the socket for the API server's connections to simulated kubelets.
func (s sockets) kubelets() string { return s.path("kubelets.sock") }

// program is the socket for connections to a program that runs as a pod.
func (s sockets) program() string { return s.path("program.sock") }

// node is the socket for commands to a real node.
func (s sockets) node(number int) string {
	return s.path(filepath.Join("nodes", realnode.Name(number), "node.sock"))
}

// path returns the path of a socket: in the data directory, or in a directory of the user below
// /tmp if the name of the data directory is too long.
func (s sockets) path(name string) string {
	path := filepath.Join(s.dir, name)
	if len(path) <= longestSocket {
		return path
	}
	sum := fnv.New64a()
	sum.Write([]byte(path))
	return filepath.Join("/tmp", fmt.Sprintf("tidekeeper-sandbox-%d", os.Getuid()), fmt.Sprintf("%x.sock", sum.Sum64()))
}

// makePrivate creates a directory in a directory that every user can write to. It refuses a directory of
// another user, as the owner of the directory could replace a socket in it.
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
