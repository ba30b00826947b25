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

// StartSweeper starts a process that kills the remaining processes of programs, when the returned
// function is called, or when this process has ended, however it did. Their processes have a
// KUBECONFIG in that directory, which they inherit from the program.
//
// The parent death signal reaches a program, and not the processes that it has started.
func StartSweeper(dir string) (end func(), _ error) {
	cmd := &exec.Cmd{
		Path: "/proc/self/exe", Args: []string{component.Sweeper, dir}, Env: []string{"GOMAXPROCS=1"},
		// A signal to the group of this process, as from a terminal, is none to it.
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

// Sweep is the process that [StartSweeper] starts: it waits for the end of its input. The
// arguments are the directory.
func Sweep(args []string) error {
	if len(args) != 1 || !filepath.IsAbs(args[0]) {
		return fmt.Errorf("this is an internal command of 'sandbox explore': it takes an absolute path of a directory, and not %q", args)
	}
	_, _ = io.Copy(io.Discard, os.Stdin)
	return sweep(args[0])
}

// sweeping is the longest time that a sweep takes.
const sweeping = 10 * time.Second

// sweep kills the programs of a directory, until there are none.
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

// isOf reports whether a process has its KUBECONFIG in a directory. The environment of a process
// that has ended, or of another user, cannot be read.
func isOf(process procfs.Proc, dir string) bool {
	environment, err := process.Environ()
	return err == nil && slices.ContainsFunc(environment, func(variable string) bool {
		return strings.HasPrefix(variable, "KUBECONFIG="+dir+string(filepath.Separator))
	})
}
