// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package realnode

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Namespaces holds the clone flags for the Linux namespaces of a node's process.
const Namespaces = syscall.CLONE_NEWPID | syscall.CLONE_NEWNS | syscall.CLONE_NEWNET | syscall.CLONE_NEWUTS | syscall.CLONE_NEWIPC

const (
	// startTimeout is the maximum startup time of containerd.
	startTimeout = time.Minute
	// restartAfter is the delay before a program of the node that has exited is restarted.
	restartAfter = time.Second
)

// running is a real node that runs in this process.
type running struct {
	Spec
	reaper *reaper
}

// Run runs a node in this process, which is PID 1 in its PID namespace. On SIGTERM, the process
// exits, and all other processes of the node are killed.
func Run(file string) error {
	if os.Getpid() != 1 {
		return errors.New("this is the process of a node, which 'sandbox up --real-nodes' starts")
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	s, err := readSpec(file)
	if err != nil {
		return err
	}
	n := &running{Spec: s, reaper: newReaper()}
	// Open the API server's network namespace now. Its path in the machine's /proc is no longer
	// visible after the node's own /proc is mounted.
	outside, err := os.Open(s.HostNetwork)
	if err != nil {
		return err
	}
	if err := n.prepare(); err != nil {
		return err
	}
	if err := n.serveNames(ctx); err != nil {
		return err
	}
	g := &gateway{spec: s, outside: outside, load: n.load}
	if err := g.serveAPI(ctx); err != nil {
		return err
	}
	go n.keep("containerd", "--config", s.file("containerd.toml"))
	if err := n.waitContainerd(ctx); err != nil {
		return err
	}
	if err := n.loadAll(); err != nil {
		return err
	}
	if err := g.serveSocket(ctx); err != nil {
		return err
	}
	go n.keep("kubelet", s.kubeletArgs()...)
	<-ctx.Done()
	return nil
}

// prepare creates the directories, files and cgroups that the programs of the node need.
func (n *running) prepare() error {
	if err := os.RemoveAll(n.file("state")); err != nil {
		return err
	}
	for _, name := range []string{"", "kubelet", "pods", "containerd"} {
		if err := os.MkdirAll(n.state(name), 0o700); err != nil {
			return err
		}
	}
	// An earlier run of the node that was killed could not remove its cgroup.
	if err := RemoveCgroup(n.Cgroup); err != nil {
		return err
	}
	if err := makeCgroup(n.Cgroup); err != nil {
		return err
	}
	if err := n.mount(); err != nil {
		return err
	}
	if err := unix.Sethostname([]byte(n.Name)); err != nil {
		return err
	}
	return n.configure()
}

// serveNames adds the node's addresses, which include the cluster IPs of the API server and the DNS
// server, to the loopback interface. It then starts the DNS server.
func (n *running) serveNames(ctx context.Context) error {
	service, err := netip.ParseAddr(n.Service)
	if err != nil {
		return err
	}
	dns, err := netip.ParseAddr(n.DNS)
	if err != nil {
		return err
	}
	if err := setUpLoopback(NetworkOf(n.Number).Node, service, dns); err != nil {
		return err
	}
	return serveDNS(ctx, dns, service)
}

// configure writes the configuration files of the kubelet and containerd.
func (n *running) configure() error {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return err
	}
	runc, err := n.runc()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(n.file("cni"), 0o700); err != nil {
		return err
	}
	for name, text := range map[string]string{
		"kubelet.yaml":            n.kubeletConfig(),
		"containerd.toml":         n.containerdConfig(n.snapshotter(), runc, !mayRaise(string(status))),
		"cni/10-sandbox.conflist": n.cniConfig(),
		"resolv.conf":             "",
	} {
		if err := os.WriteFile(n.file(name), []byte(text), 0o600); err != nil {
			return err
		}
	}
	return nil
}

// snapshotter returns the name of the snapshotter, the part of containerd that stores file systems
// of containers. It is overlayfs, unless the data directory's file system does not support
// overlays.
func (n *running) snapshotter() string {
	dir := n.state("overlay")
	for _, name := range []string{"lower", "upper", "work", "merged"} {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o700); err != nil {
			return "native"
		}
	}
	in := func(name string) string { return filepath.Join(dir, name) }
	options := fmt.Sprintf("lowerdir=%s,upperdir=%s,workdir=%s", in("lower"), in("upper"), in("work"))
	if err := unix.Mount("overlay", in("merged"), "overlay", 0, options); err != nil {
		return "native"
	}
	_ = unix.Unmount(in("merged"), 0)
	return "overlayfs"
}

// runc returns the path of the program that starts containers. A runc that was built without
// libseccomp rejects containers with a seccomp filter. In this case, the path is that of a wrapper
// that removes the filter.
func (n *running) runc() (string, error) {
	runc := n.program("runc")
	out := n.state("runc-version")
	if err := n.logged(out, runc, "--version"); err != nil {
		return "", err
	}
	text, err := os.ReadFile(out)
	if err != nil || strings.Contains(string(text), "libseccomp") {
		return runc, err
	}
	return n.program("runc-without-seccomp"), nil
}

// command returns a command whose standard output and standard error are written to the log file.
func command(log *os.File, program string, args ...string) *exec.Cmd {
	cmd := exec.Command(program, args...)
	cmd.Stdout, cmd.Stderr = log, log
	return cmd
}

// logged runs a program until it exits, and appends its output to the given log file.
func (n *running) logged(file, program string, args ...string) error {
	log, err := os.OpenFile(file, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	return n.reaper.run(command(log, program, args...))
}

// keep runs a program, and restarts it each time it exits.
func (n *running) keep(name string, args ...string) {
	for ; ; time.Sleep(restartAfter) {
		err := n.once(name, args...)
		fmt.Fprintf(os.Stderr, "%s ended (%v), and is started again in %s\n", name, err, restartAfter)
	}
}

func (n *running) once(name string, args ...string) error {
	log, err := os.OpenFile(filepath.Join(n.Logs, n.Name+"-"+name+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := command(log, n.program(name), args...)
	// containerd looks up its shim in the PATH, and the shim looks up runc.
	cmd.Env = append(os.Environ(), "PATH="+n.Programs+":"+os.Getenv("PATH"))
	return n.reaper.run(cmd)
}

func (n *running) waitContainerd(ctx context.Context) error {
	for end := time.Now().Add(startTimeout); ; time.Sleep(50 * time.Millisecond) {
		c, err := (&net.Dialer{}).DialContext(ctx, "unix", containerdSocket)
		if err == nil {
			return c.Close()
		}
		if ctx.Err() != nil || time.Now().After(end) {
			return fmt.Errorf("containerd does not answer: %w", err)
		}
	}
}

// loadAll imports all archives in the image directory into containerd.
func (n *running) loadAll() error {
	archives, err := filepath.Glob(filepath.Join(n.Images, "*.tar"))
	if err != nil {
		return err
	}
	for _, archive := range archives {
		if err := n.load(archive); err != nil {
			return err
		}
	}
	return nil
}

// load imports the images of an archive into containerd.
func (n *running) load(archive string) error {
	log := filepath.Join(n.Logs, n.Name+"-images.log")
	err := n.logged(log, n.program("ctr"), "--address", containerdSocket, "--namespace", "k8s.io", "images", "import", "--no-unpack", archive)
	if err != nil {
		return fmt.Errorf("load %s: %w: see %s", archive, err, log)
	}
	return nil
}
