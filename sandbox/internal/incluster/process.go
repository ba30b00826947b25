// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package incluster

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"

	"github.com/prometheus/procfs"
	"golang.org/x/sys/unix"

	"tidekeeper.dev/tidekeeper/sandbox/client/child"
)

// passedOn lists the signals that the outer and the inner process forward to the program.
var passedOn = []os.Signal{
	syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGUSR1, syscall.SIGUSR2,
}

// LookPath returns the path of the program, or an error if it does not exist.
func LookPath(program string) (string, error) {
	path, err := exec.LookPath(program)
	switch {
	case errors.Is(err, exec.ErrDot):
		return "", fmt.Errorf("%s is in the current directory: name it ./%s", program, program)
	case errors.Is(err, exec.ErrNotFound), errors.Is(err, os.ErrNotExist):
		return "", fmt.Errorf("there is no program %s: build it first, or give the path of its file", program)
	case err != nil:
		return "", fmt.Errorf("%s cannot be run: %w", program, errors.Unwrap(err))
	}
	return path, nil
}

// supervise starts the program, forwards signals to it and returns its exit code. It kills the
// program when the outer process has exited. When the program's Pod is deleted, supervise sends
// SIGTERM and, after the grace period, kills the program.
func supervise(cmd *exec.Cmd, signals <-chan os.Signal, starterEnded <-chan struct{}, podDeleted <-chan time.Duration) (int, error) {
	// Adopt the program's orphaned child processes, so that endLeftBehind finds and kills them.
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return 0, err
	}
	defer endLeftBehind()
	if err := child.Start(cmd); err != nil {
		return 0, fmt.Errorf("start %s: %w", cmd.Path, err)
	}
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait()
		close(ended)
	}()
	var graceOver <-chan time.Time
	for {
		select {
		case s := <-signals:
			_ = cmd.Process.Signal(s)
		case <-starterEnded:
			starterEnded = nil
			_ = cmd.Process.Kill()
		case grace := <-podDeleted:
			podDeleted = nil
			graceOver = time.After(grace)
			_ = cmd.Process.Signal(syscall.SIGTERM)
		case <-graceOver:
			_ = cmd.Process.Kill()
		case <-ended:
			return exitCode(cmd.ProcessState), nil
		}
	}
}

// endLeftBehind kills the program's remaining child processes, as happens when a container exits.
func endLeftBehind() {
	for limit := time.Now().Add(leftBehind); time.Now().Before(limit); {
		all, err := procfs.AllProcs()
		if err != nil {
			return
		}
		found := false
		for _, process := range all {
			if stat, err := process.Stat(); err == nil && stat.PPID == os.Getpid() && stat.State != "Z" {
				found = true
				_ = syscall.Kill(process.PID, syscall.SIGKILL)
			}
		}
		if !found {
			return
		}
		// This process now adopts the children of the killed processes. The next iteration kills
		// them.
		time.Sleep(time.Millisecond)
	}
}

// leftBehind is the maximum time for killing the program's remaining child processes.
const leftBehind = 5 * time.Second

// exitCode returns the program's exit code by the convention of shells: 128 plus the signal number
// if a signal terminated the program.
func exitCode(state *os.ProcessState) int {
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int(status.Signal())
	}
	return state.ExitCode()
}

// ended returns a channel that is closed when the file reaches EOF.
func ended(f *os.File) <-chan struct{} {
	done := make(chan struct{})
	go func() {
		_, _ = f.Read(make([]byte, 1))
		close(done)
	}()
	return done
}
