// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package realnode

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"sync"
	"syscall"
)

// reaper collects the exit statuses of all child processes. Because this process is PID 1 in its
// namespace, it also adopts orphans that it did not start.
type reaper struct {
	mu      sync.Mutex
	waiting map[int]chan syscall.WaitStatus
}

func newReaper() *reaper {
	r := &reaper{waiting: map[int]chan syscall.WaitStatus{}}
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, syscall.SIGCHLD)
	go func() {
		for range ended {
			r.reap()
		}
	}()
	return r
}

// reap collects the exit statuses of terminated child processes.
func (r *reaper) reap() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, syscall.WNOHANG, nil)
		if errors.Is(err, syscall.EINTR) {
			continue
		}
		if err != nil || pid <= 0 {
			return
		}
		if wait, ours := r.waiting[pid]; ours {
			delete(r.waiting, pid)
			wait <- status
		}
	}
}

// start starts a command, and returns a channel that receives its exit status. The caller must not
// call the command's Wait method, which would compete with the reaper for the exit status.
func (r *reaper) start(cmd *exec.Cmd) (<-chan syscall.WaitStatus, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	wait := make(chan syscall.WaitStatus, 1)
	r.waiting[cmd.Process.Pid] = wait
	return wait, nil
}

// run starts a command and waits until it exits.
func (r *reaper) run(cmd *exec.Cmd) error {
	wait, err := r.start(cmd)
	if err != nil {
		return err
	}
	if status := <-wait; status != 0 {
		return fmt.Errorf("%s: %s", cmd.Path, describe(status))
	}
	return nil
}

func describe(status syscall.WaitStatus) string {
	if status.Signaled() {
		return status.Signal().String()
	}
	return fmt.Sprintf("exit code %d", status.ExitStatus())
}
