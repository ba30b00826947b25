// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package incluster

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// insideVariable is an environment variable that is set in the inner process. Its value identifies
// the outer process's mount namespace.
const insideVariable = "SANDBOX_RUN_OUTSIDE"

// starterFD is the file descriptor, in the inner process, of the read end of a pipe. Only the outer
// process holds the write end, so the pipe is closed when the outer process exits for any reason.
const starterFD = 3

// Inside reports whether this is the inner process. If it is, Inside also returns a file that
// reaches EOF when the outer process exits.
func Inside() (starter *os.File, inside bool, _ error) {
	outside := os.Getenv(insideVariable)
	if outside == "" {
		return nil, false, nil
	}
	namespace, err := mountNamespace()
	if err != nil {
		return nil, false, err
	}
	if namespace == outside || !strings.HasPrefix(outside, "mnt:[") {
		// The variable is set although this process has no mount namespace of its own. Mounts of
		// this process would appear in all processes of the machine.
		return nil, false, fmt.Errorf("%s is set, and not by 'sandbox run': unset it", insideVariable)
	}
	// Hide the pipe and the environment variable from the program.
	syscall.CloseOnExec(starterFD)
	return os.NewFile(starterFD, "starter"), true, os.Unsetenv(insideVariable)
}

func mountNamespace() (string, error) { return os.Readlink("/proc/self/ns/mnt") }

// Enter runs this command again in new Linux namespaces and returns its exit code.
func Enter() (int, error) {
	outside, err := mountNamespace()
	if err != nil {
		return 0, err
	}
	r, w, err := os.Pipe()
	if err != nil {
		return 0, err
	}
	defer w.Close()
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, passedOn...)
	defer signal.Stop(signals)

	environment := append(os.Environ(), insideVariable+"="+outside)
	inside, err := startInNamespaces(environment, r)
	if err != nil {
		return 0, err
	}
	r.Close()
	ended := make(chan struct{})
	defer close(ended)
	go func() {
		for {
			select {
			case s := <-signals:
				_ = inside.Process.Signal(s)
			case <-ended:
				return
			}
		}
	}()
	_ = inside.Wait()
	return exitCode(inside.ProcessState), nil
}

// ownNamespaces returns process attributes for new namespaces, to be tried in order. The first
// attributes rely on the current privileges. The second attributes add a user namespace, which
// grants the necessary privileges and keeps the user's ID.
func ownNamespaces(own uintptr) []*syscall.SysProcAttr {
	return []*syscall.SysProcAttr{
		{Cloneflags: own},
		{
			Cloneflags:  own | syscall.CLONE_NEWUSER,
			UidMappings: []syscall.SysProcIDMap{{ContainerID: os.Getuid(), HostID: os.Getuid(), Size: 1}},
			GidMappings: []syscall.SysProcIDMap{{ContainerID: os.Getgid(), HostID: os.Getgid(), Size: 1}},
			// A program that a user other than root executes keeps only its ambient capabilities.
			AmbientCaps: []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_NET_ADMIN, unix.CAP_NET_BIND_SERVICE},
		},
	}
}

// startInNamespaces starts this command again in new mount and UTS namespaces.
func startInNamespaces(environment []string, starter *os.File) (*exec.Cmd, error) {
	var err error
	for _, attributes := range ownNamespaces(syscall.CLONE_NEWNS | syscall.CLONE_NEWUTS) {
		// The outer process forwards signals. Use another process group, because a signal from the
		// terminal to the outer process's group would otherwise reach the program twice.
		attributes.Setpgid = true
		cmd := &exec.Cmd{
			Path: "/proc/self/exe", Args: os.Args, Env: environment,
			Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr,
			ExtraFiles:  []*os.File{starter},
			SysProcAttr: attributes,
		}
		if err = cmd.Start(); err == nil {
			return cmd, nil
		}
	}
	return nil, notPermitted(err)
}

// notPermitted wraps an error of creating a namespace in an error that explains what the user can
// do.
func notPermitted(err error) error {
	var errno syscall.Errno
	if errors.As(err, &errno) {
		err = errno
	}
	return fmt.Errorf("this machine does not permit a mount namespace (%w): run it as root, or allow user namespaces%s", err, forbidding())
}

// forbidding returns the end of an error message, which names the kernel setting that forbids
// namespaces, or "" if there is no such setting.
func forbidding() string {
	for _, setting := range []struct{ name, forbids string }{
		{"user/max_mnt_namespaces", "0"},
		{"user/max_net_namespaces", "0"},
		{"user/max_user_namespaces", "0"},
		{"kernel/unprivileged_userns_clone", "0"},
		{"kernel/apparmor_restrict_unprivileged_userns", "1"},
	} {
		value, err := os.ReadFile("/proc/sys/" + setting.name)
		if err == nil && strings.TrimSpace(string(value)) == setting.forbids {
			return fmt.Sprintf(", which 'sysctl %s' forbids here", strings.ReplaceAll(setting.name, "/", "."))
		}
	}
	return ""
}
