// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package incluster

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/prometheus/procfs"

	"tidekeeper.dev/tidekeeper/sandbox/internal/component"
)

// StartSweeper starts a process, the sweeper, that kills the processes that programs leave behind.
// It kills them when the returned function is called, or when this process has exited for any
// reason. It recognizes them by their environment variable KUBECONFIG, a path in the given
// directory, which they inherit from the program.
//
// The sweeper is needed because the kernel kills only the program itself, not its child processes,
// when this process exits.
func StartSweeper(dir string) (end func(), _ error) {
	cmd := &exec.Cmd{
		Path: "/proc/self/exe", Args: []string{component.Sweeper, dir}, Env: []string{"GOMAXPROCS=1"},
		// Use another process group, so that signals to this process's group, as from a terminal,
		// do not reach the sweeper.
		SysProcAttr: &syscall.SysProcAttr{Setpgid: true},
	}
	starter, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the sweeper: %w", err)
	}
	return func() {
		_ = starter.Close()
		_ = cmd.Wait()
	}, nil
}

// Sweep runs in the process that [StartSweeper] starts. It waits until its standard input is
// closed, and then kills all processes whose KUBECONFIG is in the directory args[0].
func Sweep(args []string) error {
	if len(args) != 1 || !filepath.IsAbs(args[0]) {
		return fmt.Errorf("this is an internal command of 'sandbox explore': it takes an absolute path of a directory, and not %q", args)
	}
	_, _ = io.Copy(io.Discard, os.Stdin)
	return sweep(args[0])
}

// sweeping is the maximum time for killing all processes that programs have left behind.
const sweeping = 10 * time.Second

// sweep repeatedly kills the processes whose KUBECONFIG is in the directory dir, until none is
// left.
func sweep(dir string) error {
	for limit := time.Now().Add(sweeping); time.Now().Before(limit); {
		all, err := procfs.AllProcs()
		if err != nil {
			return err
		}
		found := false
		for _, process := range all {
			if process.PID != os.Getpid() && isOf(process, dir) {
				found = true
				_ = syscall.Kill(process.PID, syscall.SIGKILL)
			}
		}
		if !found {
			return nil
		}
	}
	return fmt.Errorf("programs of %s do not end", dir)
}

// isOf reports whether a process's KUBECONFIG is in the directory. It returns false for terminated
// processes and for processes of other users, whose environment cannot be read.
func isOf(process procfs.Proc, dir string) bool {
	environment, err := process.Environ()
	return err == nil && slices.ContainsFunc(environment, func(variable string) bool {
		return strings.HasPrefix(variable, "KUBECONFIG="+dir+string(filepath.Separator))
	})
}
