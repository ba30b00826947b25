// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package incluster

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
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
	// names receives the program's DNS queries, and ports accepts its connections to the ports of
	// pods and Services. They are nil if the program has no such ports (see Pod.Ports).
	names net.PacketConn
	ports []net.Listener

	mu sync.Mutex
	// door is a listener and seed is a socket in the program's network namespace. Connecting seed
	// to door creates a socket for a connection to the program. -1 means closed.
	door, seed int
}

// sockets returns the number of sockets that a program's process sends: the listener for connections
// to the API server, the sockets door and seed, and for programs with ports the socket for DNS
// queries and a listener for each port.
func sockets(ports []int) int {
	if len(ports) == 0 {
		return 3
	}
	return 4 + len(ports)
}

// handing is the maximum time for a new process to send its sockets. It is long, because the
// machine may be busy. If that process exits first, the wait ends immediately.
const handing = 5 * time.Minute

// handedFrom receives the [Network] that a new process sends through the other end of a socket
// pair. "ports" are those of the [Pod].
func handedFrom(handed *os.File, ports []int) (*Network, error) {
	connection, err := net.FileConn(handed)
	if err != nil {
		return nil, err
	}
	defer connection.Close()
	socket := connection.(*net.UnixConn)
	if err := socket.SetReadDeadline(time.Now().Add(handing)); err != nil {
		return nil, err
	}
	oob := make([]byte, unix.CmsgSpace(4*sockets(ports)))
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
	if want := sockets(ports); len(rights) != want {
		for _, fd := range rights {
			_ = unix.Close(fd)
		}
		return nil, fmt.Errorf("its network came as %d sockets, not %d", len(rights), want)
	}
	network := &Network{door: rights[1], seed: rights[2]}
	if network.api, err = listenerOf(rights[0]); err == nil && len(ports) > 0 {
		err = network.reaches(rights[3], rights[4:])
	}
	if err != nil {
		network.Close()
		return nil, err
	}
	return network, nil
}

// reaches adds the socket for DNS queries and the listeners for ports of pods and Services.
func (n *Network) reaches(names int, ports []int) (err error) {
	for _, fd := range ports {
		listener, notOne := listenerOf(fd)
		if err = errors.Join(err, notOne); notOne == nil {
			n.ports = append(n.ports, listener)
		}
	}
	file := os.NewFile(uintptr(names), "names")
	defer file.Close()
	socket, notOne := net.FilePacketConn(file)
	if notOne == nil {
		n.names = socket
	}
	return errors.Join(err, notOne)
}

// listenerOf returns the listener of a file descriptor, which it closes.
func listenerOf(fd int) (net.Listener, error) {
	file := os.NewFile(uintptr(fd), "listener")
	defer file.Close()
	return net.FileListener(file)
}

// API returns the listener for the program's connections to the API server.
func (n *Network) API() net.Listener { return n.api }

// Names returns the socket that receives the program's DNS queries, or nil if there is none.
func (n *Network) Names() net.PacketConn { return n.names }

// Ports returns the listeners for the program's connections to pods and Services, in the order of
// [Pod].Ports. The local address of a connection is that which the program has connected to.
func (n *Network) Ports() []net.Listener { return n.ports }

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
	if n.names != nil {
		_ = n.names.Close()
	}
	for _, listener := range n.ports {
		_ = listener.Close()
	}
	if n.seed >= 0 {
		_ = unix.Close(n.seed)
		_ = unix.Close(n.door)
	}
	n.seed, n.door = -1, -1
}

// handOver creates the sockets of a [Network] in this process's network namespace, and sends them
// through the socket fd, which it then closes. The given address is the API server's address for
// the program, and "ports" are those of the [Pod].
func handOver(fd int, address string, ports []int) error {
	defer unix.Close(fd)
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
	var made listeners
	defer made.close()
	made.listen(address)
	if len(ports) > 0 {
		made.receive(nameServer)
		for _, port := range ports {
			made.listen(net.JoinHostPort("0.0.0.0", strconv.Itoa(port)))
		}
	}
	if made.err != nil {
		return made.err
	}
	rights := []int{int(made.all[0].Fd()), door, seed}
	for _, file := range made.all[1:] {
		rights = append(rights, int(file.Fd()))
	}
	return unix.Sendmsg(fd, []byte{0}, unix.UnixRights(rights...), nil, 0)
}

// listeners holds the files of sockets that listen in a network namespace, and the error that has prevented
// another.
type listeners struct {
	all []*os.File
	err error
}

func (f *listeners) listen(address string) {
	if f.err != nil {
		return
	}
	listener, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp4", address)
	if f.err = err; err != nil {
		return
	}
	defer listener.Close()
	f.add(listener.(*net.TCPListener).File())
}

// receive adds the socket for UDP packets to an address.
func (f *listeners) receive(address string) {
	if f.err != nil {
		return
	}
	socket, err := (&net.ListenConfig{}).ListenPacket(context.Background(), "udp4", address)
	if f.err = err; err != nil {
		return
	}
	defer socket.Close()
	f.add(socket.(*net.UDPConn).File())
}

func (f *listeners) add(file *os.File, err error) {
	if f.err = err; err == nil {
		f.all = append(f.all, file)
	}
}

func (f *listeners) close() {
	for _, file := range f.all {
		_ = file.Close()
	}
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

// AddAddress adds an address to the loopback interface of this network namespace, with a label such
// as lo:1. All addresses with the same prefix become local, too.
func AddAddress(label string, address netip.Prefix) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	for _, step := range []struct {
		ioctl uint
		value net.IP
	}{
		{unix.SIOCSIFADDR, address.Addr().AsSlice()},
		// Without a netmask, that of the class A, B or C network applies.
		{unix.SIOCSIFNETMASK, net.IP(net.CIDRMask(address.Bits(), 32))},
	} {
		request, err := unix.NewIfreq(label)
		if err != nil {
			return err
		}
		if err := request.SetInet4Addr(step.value); err != nil {
			return err
		}
		if err := unix.IoctlIfreq(fd, step.ioctl, request); err != nil {
			return fmt.Errorf("the address %s: %w", address, err)
		}
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
