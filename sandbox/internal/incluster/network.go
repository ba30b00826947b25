// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package incluster

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Network is a program's network namespace. It has only a loopback interface, on which all ports
// are free. The program's process has created sockets in the namespace, and has sent them to this
// process.
type Network struct {
	// api listens for the program's connections to the API server.
	api net.Listener

	mu sync.Mutex
	// door is a listener and seed is a socket in the program's network namespace. Connecting seed
	// to door creates a socket for a connection to the program. -1 means closed.
	door, seed int
}

// sockets is the number of sockets that a program's process sends: the listener for connections to
// the API server, and the sockets door and seed.
const sockets = 3

// handing is the maximum time for a new process to send its sockets. It is long, because the
// machine may be busy. If that process exits first, the wait ends immediately.
const handing = 5 * time.Minute

// handedFrom receives the [Network] that a new process sends through the other end of a socket
// pair.
func handedFrom(handed *os.File) (*Network, error) {
	connection, err := net.FileConn(handed)
	if err != nil {
		return nil, err
	}
	defer connection.Close()
	socket := connection.(*net.UnixConn)
	if err := socket.SetReadDeadline(time.Now().Add(handing)); err != nil {
		return nil, err
	}
	oob := make([]byte, unix.CmsgSpace(4*sockets))
	_, n, _, _, err := socket.ReadMsgUnix(make([]byte, 1), oob)
	if err != nil {
		return nil, errors.New("it has not made its network")
	}
	messages, err := unix.ParseSocketControlMessage(oob[:n])
	if err != nil || len(messages) != 1 {
		return nil, errors.Join(fmt.Errorf("its network came in %d messages", len(messages)), err)
	}
	rights, err := unix.ParseUnixRights(&messages[0])
	if err != nil {
		return nil, err
	}
	for _, fd := range rights {
		unix.CloseOnExec(fd)
	}
	if len(rights) != sockets {
		for _, fd := range rights {
			_ = unix.Close(fd)
		}
		return nil, fmt.Errorf("its network came as %d sockets, not %d", len(rights), sockets)
	}
	network := &Network{door: rights[1], seed: rights[2]}
	listener := os.NewFile(uintptr(rights[0]), "api")
	defer listener.Close()
	if network.api, err = net.FileListener(listener); err != nil {
		network.Close()
		return nil, err
	}
	return network, nil
}

// API returns the listener for the program's connections to the API server.
func (n *Network) API() net.Listener { return n.api }

// Dial connects to a port of the program.
func (n *Network) Dial(ctx context.Context, port int) (net.Conn, error) {
	fd, err := n.socket()
	if err != nil {
		return nil, err
	}
	connected := make(chan error, 1)
	go func() { connected <- unix.Connect(fd, &unix.SockaddrInet4{Port: port, Addr: [4]byte{127, 0, 0, 1}}) }()
	select {
	case err := <-connected:
		if err != nil {
			_ = unix.Close(fd)
			return nil, err
		}
	case <-ctx.Done():
		_ = unix.Shutdown(fd, unix.SHUT_RDWR)
		_ = unix.Close(fd)
		return nil, ctx.Err()
	}
	file := os.NewFile(uintptr(fd), "program")
	defer file.Close()
	return net.FileConn(file)
}

// socket returns a new unconnected socket in the program's network namespace, without entering the
// namespace. It connects the two sockets that the program's process has sent. The accepted socket
// belongs to the namespace, and is then disconnected for another connection.
func (n *Network) socket() (int, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.seed < 0 {
		return 0, net.ErrClosed
	}
	at, err := unix.Getsockname(n.door)
	if err != nil {
		return 0, err
	}
	if err := unix.Connect(n.seed, at); err != nil {
		return 0, fmt.Errorf("make a socket in the network of the program: %w", err)
	}
	fd, _, err := unix.Accept4(n.door, unix.SOCK_CLOEXEC)
	if err = errors.Join(err, disconnect(n.seed)); err == nil {
		err = disconnect(fd)
	}
	if err != nil {
		_ = unix.Close(fd)
		return 0, fmt.Errorf("make a socket in the network of the program: %w", err)
	}
	return fd, nil
}

// disconnect disconnects a socket so that it can be connected again.
func disconnect(fd int) error {
	none := unix.RawSockaddr{Family: unix.AF_UNSPEC}
	// Package unix has no type for an AF_UNSPEC address.
	_, _, errno := unix.Syscall(unix.SYS_CONNECT, uintptr(fd), uintptr(unsafe.Pointer(&none)), unsafe.Sizeof(none))
	if errno != 0 {
		return errno
	}
	return nil
}

// Close closes the sockets of the namespace that this process holds. Existing connections stay
// open.
func (n *Network) Close() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.api != nil {
		_ = n.api.Close()
	}
	if n.seed >= 0 {
		_ = unix.Close(n.seed)
		_ = unix.Close(n.door)
	}
	n.seed, n.door = -1, -1
}

// handOver creates the sockets of a [Network] in this process's network namespace, and sends them
// through the socket fd, which it then closes. The given address is the API server's address for
// the program.
func handOver(fd int, address string) error {
	defer unix.Close(fd)
	listener, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", address)
	if err != nil {
		return err
	}
	defer listener.Close()
	file, err := listener.(*net.TCPListener).File()
	if err != nil {
		return err
	}
	defer file.Close()
	door, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(door)
	if err := unix.Bind(door, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		return err
	}
	if err := unix.Listen(door, 1); err != nil {
		return err
	}
	seed, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(seed)
	return unix.Sendmsg(fd, []byte{0}, unix.UnixRights(int(file.Fd()), door, seed), nil, 0)
}

// SetUpLoopback brings up the loopback interface of this network namespace.
func SetUpLoopback() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	request, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	request.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	if err := unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, request); err != nil {
		return fmt.Errorf("the loopback device: %w", err)
	}
	return nil
}

// pass adds one end of a socket pair to a command, whose process then sends the sockets of its
// network through it. pass returns that end's file descriptor number in the new process, the file
// to close after the start, and the other end.
func pass(cmd *exec.Cmd) (number string, passed, handed *os.File, _ error) {
	ends, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return "", nil, nil, err
	}
	passed = os.NewFile(uintptr(ends[1]), "network")
	cmd.ExtraFiles = append(cmd.ExtraFiles, passed)
	return strconv.Itoa(2 + len(cmd.ExtraFiles)), passed, os.NewFile(uintptr(ends[0]), "network"), nil
}
