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

// passedOn are the signals that the program gets.
var passedOn = []os.Signal{
	syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGUSR1, syscall.SIGUSR2,
}

// LookPath returns the program, or an error that says that there is none.
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

// supervise starts the program, passes signals on to it and returns its exit code. The
// program is killed when the process outside has ended, and ends as on a node when its
// Pod is deleted.
func supervise(cmd *exec.Cmd, signals <-chan os.Signal, starterEnded <-chan struct{}, podDeleted <-chan time.Duration) (int, error) {
	// Processes that the program leaves behind become children of this process.
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

// endLeftBehind kills the processes that the program has left behind, as the end of a container
// does.
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
		// The children of the killed processes come next.
		time.Sleep(time.Millisecond)
	}
}

// leftBehind is how long that may take.
const leftBehind = 5 * time.Second

// exitCode is the exit code as a shell reports it: 128 plus the signal for a program that a signal
// has ended.
func exitCode(state *os.ProcessState) int {
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int(status.Signal())
	}
	return state.ExitCode()
}

// ended returns a channel that is closed when the file ends.
func ended(f *os.File) <-chan struct{} {
	done := make(chan struct{})
	go func() {
		_, _ = f.Read(make([]byte, 1))
		close(done)
	}()
	return done
}
