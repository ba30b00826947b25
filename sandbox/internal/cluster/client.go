// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Control is a client that controls the sandbox running in a data directory.
type Control struct {
	dir    Dir
	socket string
	lock   lockFile
}

// Running reports whether a sandbox is running in the directory.
func (c Control) Running() bool { return c.lock.held() }

// NotRunning returns the error to report if no sandbox is running in the directory.
func (c Control) NotRunning() error {
	return fmt.Errorf("no sandbox runs in %s: start one with 'sandbox up', or say where it is with --data-dir", c.dir)
}

// answers reports whether the process of a sandbox listens on the control socket.
func (c Control) answers() bool {
	_, err := peer(context.Background(), c.socket)
	return err == nil
}

// pid returns the process ID of the running sandbox or, if there is none, of the last sandbox in
// the directory. It returns 0 if the ID is unknown.
func (c Control) pid() int {
	if pid, err := peer(context.Background(), c.socket); err == nil {
		return pid
	}
	return c.lock.pid()
}

// call sends a request to the control socket of the sandbox, and decodes the JSON response into
// "answer" unless it is nil.
func (c Control) call(ctx context.Context, method, path string, answer any) error {
	if !c.Running() {
		return c.NotRunning()
	}
	client := &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", c.socket)
		},
	}}
	request, err := http.NewRequestWithContext(ctx, method, "http://sandbox"+path, nil)
	if err != nil {
		return err
	}
	response, err := client.Do(request)
	if err != nil {
		return fmt.Errorf("the sandbox in %s (pid %d) does not answer: %w", c.dir, c.pid(), err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return errors.New(strings.TrimSpace(string(body)))
	}
	if answer == nil {
		return nil
	}
	return json.Unmarshal(body, answer)
}

// Status returns the status of the running sandbox.
func (c Control) Status(ctx context.Context) (Status, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	var s Status
	return s, c.call(ctx, http.MethodGet, "/status", &s)
}

// Await waits until the running sandbox is ready, and returns its status.
func (c Control) Await(ctx context.Context) (Status, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, startTimeout,
		fmt.Errorf("the sandbox that starts in %s was not ready after %s: see %s, or stop it with 'sandbox down'", c.dir, startTimeout, c.dir.Logs()))
	defer cancel()
	for {
		s, err := c.Status(ctx)
		if err == nil && s.CameUp() {
			return s, nil
		}
		if !c.Running() {
			return s, c.NotRunning()
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
			return s, context.Cause(ctx)
		}
	}
}

// Act performs an action on a component of the running sandbox. The action is "kill", "pause",
// "resume" or "start".
func (c Control) Act(ctx context.Context, component, action string) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	return c.call(ctx, http.MethodPost, "/components/"+url.PathEscape(component)+"/"+action, nil)
}

// Stop stops the running sandbox and returns once its last process has exited. It reports whether a
// sandbox was running.
func (c Control) Stop(ctx context.Context) (bool, error) {
	if !c.Running() {
		// A sandbox that was killed could not remove its cgroups.
		return false, removeCgroups(c.dir)
	}
	ran, err := c.stop(ctx)
	return ran, errors.Join(err, removeCgroups(c.dir))
}

func (c Control) stop(ctx context.Context) (bool, error) {
	pid, err := c.process(ctx)
	if err != nil || pid == 0 {
		return pid != 0, err
	}
	process, err := unix.PidfdOpen(pid, 0)
	switch {
	case errors.Is(err, unix.ESRCH):
		return true, nil // The sandbox exited before its pidfd could be opened.
	case err != nil:
		// Pidfds (file descriptors that refer to processes) are not available, because the kernel
		// does not support them or a seccomp profile forbids them.
		return true, c.stopUnwatched(ctx, pid)
	}
	defer unix.Close(process)
	asked, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	if err := c.call(asked, http.MethodPost, "/stop", nil); err == nil && waitGone(ctx, process, 4*stopTimeout) {
		return true, nil
	}
	if ctx.Err() != nil {
		return true, ctx.Err()
	}
	// The sandbox's process hangs. Kill it; the kernel then kills its child processes, too.
	if err := unix.PidfdSendSignal(process, unix.SIGKILL, nil, 0); err != nil && !errors.Is(err, unix.ESRCH) {
		return true, fmt.Errorf("end process %d: %w", pid, err)
	}
	if !waitGone(ctx, process, killTimeout) {
		return true, fmt.Errorf("process %d was killed and has not ended yet", pid)
	}
	_ = os.Remove(c.socket)
	return true, nil
}

// killTimeout is the maximum time for a sandbox's process to end after it was killed. A busy machine
// needs some seconds to free the memory of the process.
const killTimeout = 30 * time.Second

// stopUnwatched stops the sandbox on a machine without pidfds (file descriptors that refer to
// processes). It does not kill a sandbox that fails to stop: the process may have exited in the
// meantime, and another process may have received its ID.
func (c Control) stopUnwatched(ctx context.Context, pid int) error {
	ctx, cancel := context.WithTimeout(ctx, 4*stopTimeout)
	defer cancel()
	err := c.call(ctx, http.MethodPost, "/stop", nil)
	for ctx.Err() == nil && err == nil {
		// The lock is released when the process exits.
		if !c.Running() {
			return nil
		}
		time.Sleep(50 * time.Millisecond)
	}
	return fmt.Errorf("the sandbox in %s does not stop: end process %d", c.dir, pid)
}

// process returns the ID of the sandbox's process, even if that process hangs. A sandbox that is
// starting does not have a control socket yet, so this method waits up to 5 seconds for the socket.
// If the sandbox exits first, the ID is 0.
func (c Control) process(ctx context.Context) (int, error) {
	var err error
	for range 50 {
		var pid int
		if pid, err = peer(ctx, c.socket); err == nil {
			return pid, nil
		}
		if !c.Running() {
			return 0, nil
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
	return 0, fmt.Errorf("a process has the data directory %s locked, and does not answer as a sandbox does (%w): look for it with 'fuser %s'", c.dir, err, c.lock)
}

// peer returns the ID of the process that listens on a Unix socket.
func peer(ctx context.Context, socket string) (int, error) {
	connection, err := (&net.Dialer{Timeout: time.Second}).DialContext(ctx, "unix", socket)
	if err != nil {
		return 0, err
	}
	defer connection.Close()
	raw, err := connection.(*net.UnixConn).SyscallConn()
	if err != nil {
		return 0, err
	}
	var credentials *unix.Ucred
	if controlErr := raw.Control(func(fd uintptr) {
		credentials, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	}); controlErr != nil {
		return 0, controlErr
	}
	if err != nil {
		return 0, err
	}
	if credentials.Pid <= 0 {
		return 0, errors.New("its process is in another PID namespace")
	}
	return int(credentials.Pid), nil
}

func waitGone(ctx context.Context, process int, timeout time.Duration) bool {
	for end := time.Now().Add(timeout); time.Now().Before(end) && ctx.Err() == nil; {
		n, _ := unix.Poll([]unix.PollFd{{Fd: int32(process), Events: unix.POLLIN}}, 100)
		if n > 0 {
			return true
		}
	}
	return false
}

// remembering lists the components that cache objects by UID, even the UIDs of deleted objects.
// They must not run while a snapshot is restored, because a restored object may have a UID that
// they consider deleted.
var remembering = Components[2:]

// Without kills the controller manager, the scheduler and the kubelets, calls the function "do",
// and restarts these components even if "do" fails.
func (c Control) Without(ctx context.Context, do func() error) (err error) {
	status, err := c.Status(ctx)
	if err != nil {
		return err
	}
	if status.RealNodes > 0 {
		return errors.New("this sandbox has real nodes, whose containers cannot be restored: restore in a sandbox without --real-nodes")
	}
	if down := status.Down(); len(down) > 0 {
		return fmt.Errorf("%s: start or resume it first, with 'sandbox component'", strings.Join(down, ", "))
	}
	var killed []string
	defer func() {
		// Restart the components even after an interrupt.
		ctx := context.WithoutCancel(ctx)
		for _, name := range killed {
			if failed := c.Act(ctx, name, "start"); failed != nil {
				err = errors.Join(err, fmt.Errorf("start %s again: %w", name, failed))
			}
		}
	}()
	for _, name := range remembering {
		if err := c.Act(ctx, name, "kill"); err != nil {
			return err
		}
		killed = append(killed, name)
	}
	return do()
}
