// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package incluster

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"

	corev1 "k8s.io/api/core/v1"
)

// Program is the name under which this binary calls [Exec].
const Program = "sandbox-in-pod"

// Files are those by which a program in a pod reaches the API server.
type Files struct {
	Token, CA []byte
	Namespace string
}

// names are the names of the files, and their contents.
func (f Files) names() map[string][]byte {
	return map[string][]byte{
		corev1.ServiceAccountTokenKey:     f.Token,
		corev1.ServiceAccountRootCAKey:    f.CA,
		corev1.ServiceAccountNamespaceKey: []byte(f.Namespace),
	}
}

// Write writes the files into a directory, which is made.
func (f Files) Write(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	for name, data := range f.names() {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// Surround changes a command that was not started, so that its program believes it is in a
// pod: it finds the files of a directory where a container has those of its ServiceAccount,
// and the API server of that URL by its environment. It is the same process.
//
// It is an error, and the command as before, if this machine does not permit that.
func Surround(cmd *exec.Cmd, files, server string) error {
	if cmd.Err != nil {
		return cmd.Err
	}
	address, err := url.Parse(server)
	if err != nil {
		return err
	}
	host, port, err := net.SplitHostPort(address.Host)
	if err != nil {
		return err
	}
	own, err := permitted()
	if err != nil {
		return err
	}
	cmd.Args = append([]string{Program, files, cmd.Path}, cmd.Args...)
	cmd.Path = "/proc/self/exe"
	cmd.Env = append(cmd.Environ(), serviceVariables(host, port)...)
	attributes := *own
	if cmd.SysProcAttr != nil {
		attributes.Setpgid, attributes.Pdeathsig = cmd.SysProcAttr.Setpgid, cmd.SysProcAttr.Pdeathsig
	}
	cmd.SysProcAttr = &attributes
	return nil
}

// permitted returns in which namespaces a program can have directories of its own here.
var permitted = sync.OnceValues(func() (*syscall.SysProcAttr, error) {
	var err error
	for _, attributes := range ownNamespaces(syscall.CLONE_NEWNS) {
		try := *attributes
		cmd := &exec.Cmd{Path: "/proc/self/exe", Args: []string{Program}, SysProcAttr: &try}
		if err = cmd.Run(); err == nil {
			return attributes, nil
		}
	}
	return nil, notPermitted(err)
})

// Permitted returns an error that says why [Surround] is not possible on this machine.
func Permitted() error {
	_, err := permitted()
	return err
}

// Exec is the process that [Surround] starts: it becomes the program. The arguments are the
// directory of the files, the path of the program, and its arguments, from its name on. Without
// any it only finds out whether that can be done.
func Exec(args []string) error {
	if namespace, err := mountNamespace(); err != nil {
		return err
	} else if outside, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/mnt", os.Getppid())); err == nil && outside == namespace {
		return errors.New("this is the process of an operator, which 'sandbox explore' starts")
	}
	files := Files{}
	if len(args) > 0 {
		var err error
		if files, err = readFiles(args[0]); err != nil {
			return err
		}
	}
	if err := mount(serviceAccountDir); err != nil {
		return err
	}
	if err := dropCapabilities(); err != nil {
		return err
	}
	if len(args) == 0 {
		return nil
	}
	if err := files.Write(serviceAccountDir); err != nil {
		return err
	}
	return syscall.Exec(args[1], args[2:], os.Environ())
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
