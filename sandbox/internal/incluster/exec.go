// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package incluster

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"

	"tidekeeper.dev/tidekeeper/sandbox/internal/component"
)

// Files holds the contents of a ServiceAccount's files, with which a program in a pod connects to
// the API server.
type Files struct {
	Token, CA []byte
	Namespace string
}

// names returns the contents of the ServiceAccount's files, keyed by file name.
func (f Files) names() map[string][]byte {
	return map[string][]byte{
		corev1.ServiceAccountTokenKey:     f.Token,
		corev1.ServiceAccountRootCAKey:    f.CA,
		corev1.ServiceAccountNamespaceKey: []byte(f.Namespace),
	}
}

// Write creates a directory with the ServiceAccount's files, and the configuration of a resolver of
// names in the pod's namespace.
func (f Files) Write(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	if err := writeAll(dir, map[string][]byte{ownResolver: []byte(resolver(f.Namespace))}); err != nil {
		return err
	}
	return writeAll(dir, f.names())
}

// Pod describes the environment of a program that runs as if in a pod.
type Pod struct {
	// Files is a directory with the ServiceAccount's files. CertDir is a directory with the serving
	// certificate for webhooks, or empty if there is none. The program finds the content of CertDir
	// at the path ServingCerts.
	Files, CertDir string
	ServingCerts   string
	// Server is the URL of the API server.
	Server string
	// HostName is the host name that the program sees. If it is empty, the program sees the
	// machine's host name.
	HostName string
	// HostNetwork makes the program use this machine's network.
	HostNetwork bool
	// Ports lists ports of the cluster's pods and Services that the program can connect to. If there
	// are any, all addresses of the cluster are local in the program's network, the program asks this
	// process for names, and [Network.Ports] accepts its connections.
	Ports []int
}

// Start starts a command in an environment that looks like a pod. It calls the function "start",
// which must start the given command. It returns the program's network, or nil if the program uses
// this machine's network.
//
// Start returns an error if this machine does not permit Linux namespaces.
func (p Pod) Start(cmd *exec.Cmd, start func(*exec.Cmd) error) (*Network, error) {
	if cmd.Err != nil {
		return nil, cmd.Err
	}
	host, port, err := splitServer(p.Server)
	if err != nil {
		return nil, err
	}
	own, err := permitted()
	if err != nil {
		return nil, err
	}
	attributes := *own
	if cmd.SysProcAttr != nil {
		attributes.Setpgid = cmd.SysProcAttr.Setpgid
	}
	do := inPod{Files: p.Files, CertDir: p.CertDir, ServingCerts: p.ServingCerts, HostName: p.HostName, Program: cmd.Path, Starter: os.Getpid()}
	var passed, handed *os.File
	if p.HostNetwork {
		attributes.Cloneflags &^= syscall.CLONE_NEWNET
	} else {
		do.API = net.JoinHostPort(host, port)
		do.Ports = p.Ports
		if do.Network, passed, handed, err = pass(cmd); err != nil {
			return nil, err
		}
		defer handed.Close()
	}
	text, err := json.Marshal(do)
	if err != nil {
		return nil, err
	}
	cmd.Args = append([]string{component.InPod, string(text)}, cmd.Args...)
	cmd.Path = "/proc/self/exe"
	cmd.Env = append(cmd.Environ(), serviceVariables(host, port)...)
	cmd.SysProcAttr = &attributes
	err = start(cmd)
	// From here on, only the new process holds the end of the socket pair that was passed to it. If
	// that process exits before it has sent its sockets, a read from the other end returns EOF.
	_ = passed.Close()
	if err != nil || p.HostNetwork {
		return nil, err
	}
	return handedFrom(handed, p.Ports)
}

// own holds the clone flags for the Linux namespaces of a program in a pod.
const own = syscall.CLONE_NEWNS | syscall.CLONE_NEWUTS | syscall.CLONE_NEWNET

// permitted returns the process attributes that give a program its own mounts and network on this
// machine, or an error if the machine does not permit this.
var permitted = sync.OnceValues(func() (*syscall.SysProcAttr, error) {
	var err error
	for _, attributes := range ownNamespaces(own) {
		try := *attributes
		cmd := &exec.Cmd{Path: "/proc/self/exe", Args: []string{component.InPod}, SysProcAttr: &try}
		if err = cmd.Run(); err == nil {
			return attributes, nil
		}
	}
	return nil, notPermitted(err)
})

// Permitted returns an error if this machine does not permit [Pod.Start].
func Permitted() error {
	_, err := permitted()
	return err
}

// inPod holds the instructions for the process that prepares the environment and then executes the
// program.
type inPod struct {
	Files        string `json:"files"`
	CertDir      string `json:"certDir,omitempty"`
	ServingCerts string `json:"servingCerts,omitempty"`
	HostName     string `json:"hostName,omitempty"`
	// Network is the number of the file descriptor through which the process sends the sockets of
	// its network namespace. API is the API server's address in that namespace. Both are empty if
	// the process uses this machine's network.
	Network string `json:"network,omitempty"`
	API     string `json:"api,omitempty"`
	// Ports is the field of [Pod] with the same name.
	Ports   []int  `json:"ports,omitempty"`
	Program string `json:"program"`
	// Starter is the process ID of the parent process. The program is killed when that process
	// exits.
	Starter int `json:"starter"`
}

// Exec runs in the process that [Pod.Start] starts, and executes the program. Its arguments are the
// instructions (an inPod as JSON) and the program's command line. Without arguments, it only tests
// whether Linux namespaces are permitted.
func Exec(args []string) error {
	if namespace, err := mountNamespace(); err != nil {
		return err
	} else if outside, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/mnt", os.Getppid())); err == nil && outside == namespace {
		return errors.New("this is the process of an operator, which 'sandbox explore' starts")
	}
	var do inPod
	var files Files
	if len(args) > 0 {
		if err := json.Unmarshal([]byte(args[0]), &do); err != nil {
			return err
		}
		var err error
		if files, err = readFiles(do.Files); err != nil {
			return err
		}
	}
	if err := do.network(len(args) == 0); err != nil {
		return err
	}
	dirs, certs := []string{serviceAccountDir}, map[string][]byte{}
	if do.CertDir != "" {
		dirs = append(dirs, do.ServingCerts)
		if err := readAll(do.CertDir, certs); err != nil {
			return err
		}
	}
	if err := mount(dirs...); err != nil {
		return err
	}
	if len(do.Ports) > 0 {
		if err := replaceFile(resolverFile, filepath.Join(do.Files, ownResolver)); err != nil {
			return err
		}
	}
	if do.HostName != "" {
		if err := unix.Sethostname([]byte(do.HostName[:min(len(do.HostName), longestHostName)])); err != nil {
			return fmt.Errorf("set the host name: %w", err)
		}
	}
	if err := dropCapabilities(); err != nil {
		return err
	}
	if len(args) == 0 {
		return nil
	}
	if err := writeAll(serviceAccountDir, files.names()); err != nil {
		return err
	}
	if err := writeAll(do.ServingCerts, certs); err != nil {
		return err
	}
	if err := endWith(do.Starter); err != nil {
		return err
	}
	return syscall.Exec(do.Program, args[1:], os.Environ())
}

// endWith makes the kernel kill this process when its parent exits. The kernel stores the parent
// death signal per thread, and the program inherits it from the thread that executes the program.
// endWith therefore sets the signal for the current thread.
func endWith(starter int) error {
	runtime.LockOSThread()
	if err := unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0, 0, 0); err != nil {
		return fmt.Errorf("set the parent death signal: %w", err)
	}
	if os.Getppid() != starter {
		return errors.New("the parent process has ended")
	}
	return nil
}

// longestHostName is the maximum length of a host name. A kubelet truncates longer names.
const longestHostName = 63

// network brings up the loopback interface of the program's network namespace, and sends the
// sockets of its [Network] to the parent process. If "try" is set, it only brings up the interface,
// to test whether this machine permits that.
func (do *inPod) network(try bool) error {
	if !try && do.Network == "" {
		return nil
	}
	if err := SetUpLoopback(); err != nil {
		return err
	}
	if !try && len(do.Ports) > 0 {
		if err := AddAddress("lo:1", clusterNetwork); err != nil {
			return err
		}
	}
	if try {
		return nil
	}
	fd, err := strconv.Atoi(do.Network)
	if err != nil {
		return err
	}
	return handOver(fd, do.API, do.Ports)
}

func readFiles(dir string) (f Files, err error) {
	if f.Token, err = os.ReadFile(filepath.Join(dir, corev1.ServiceAccountTokenKey)); err != nil {
		return f, err
	}
	if f.CA, err = os.ReadFile(filepath.Join(dir, corev1.ServiceAccountRootCAKey)); err != nil {
		return f, err
	}
	namespace, err := os.ReadFile(filepath.Join(dir, corev1.ServiceAccountNamespaceKey))
	f.Namespace = string(namespace)
	return f, err
}

// readAll adds the content of each file in a directory to the map `into`, keyed by file name.
func readAll(dir string, into map[string][]byte) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if into[entry.Name()], err = os.ReadFile(filepath.Join(dir, entry.Name())); err != nil {
			return err
		}
	}
	return nil
}

// writeAll writes files, which are keyed by file name, to an existing directory.
func writeAll(dir string, files map[string][]byte) error {
	for name, data := range files {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			return err
		}
	}
	return nil
}
