// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	sandbox "tidekeeper.dev/tidekeeper/sandbox/client"
)

// demo holds the demo's running processes: the cluster, the manager and the dashboard.
type demo struct {
	// bin is the directory that contains the programs. dir is the directory to which they write.
	bin, dir string

	sandbox *sandbox.Sandbox
	manager *sandbox.Process
	page    *sandbox.Process
}

func newDemo() (*demo, error) {
	own, err := os.Executable()
	if err != nil {
		return nil, err
	}
	d := &demo{bin: filepath.Dir(own)}
	for _, name := range []string{"sandbox", "tidekeeper", "kubectl-tide"} {
		if _, err := os.Stat(filepath.Join(d.bin, name)); err != nil {
			return nil, fmt.Errorf("there is no %s beside %s", name, own)
		}
	}
	// The directory is outside of the repository, because socket paths must be short.
	d.dir, err = os.MkdirTemp("", "tidekeeper-demo-")
	return d, err
}

func (d *demo) kubeconfig() string { return filepath.Join(d.dir, "kubeconfig") }
func (d *demo) logFile() string    { return filepath.Join(d.dir, "tidekeeper.log") }
func (d *demo) dataDir() string    { return filepath.Join(d.dir, "sandbox") }

// close stops the dashboard, the manager and the sandbox, and removes their files.
func (d *demo) close() error {
	var errs []error
	// The demo's context cannot be used, because Ctrl-C has cancelled it.
	ctx := context.Background()
	if d.page != nil && d.page.Running() {
		errs = append(errs, d.page.Stop(ctx))
	}
	if d.manager != nil {
		fmt.Println("\nStopping the manager.")
		if d.manager.Running() {
			errs = append(errs, d.manager.Stop(ctx))
		}
	}
	if d.sandbox != nil {
		fmt.Println("Stopping the sandbox.")
		errs = append(errs, d.sandbox.Down(ctx))
	}
	return errors.Join(append(errs, os.RemoveAll(d.dir))...)
}

// startSandbox starts a control plane with five simulated nodes.
func (d *demo) startSandbox(ctx context.Context) (err error) {
	args := []string{"--nodes=5", "--kubeconfig", d.kubeconfig()}
	fmt.Printf("$ sandbox up --detach --data-dir %s %s\n", d.dataDir(), strings.Join(args, " "))
	if d.sandbox, err = sandbox.Up(ctx, sandbox.Options{Binary: filepath.Join(d.bin, "sandbox"), Dir: d.dataDir(), Args: args}); err != nil {
		return err
	}
	fmt.Print(d.sandbox.Greeting())
	return nil
}

// startManager starts the manager as a process outside of the cluster.
func (d *demo) startManager() error {
	log, err := os.Create(d.logFile())
	if err != nil {
		return err
	}
	defer log.Close()
	args := []string{
		"--kubeconfig", d.kubeconfig(), "--log-format=text", "--log-level=debug",
		"--metrics-bind-address=0", "--health-probe-bind-address=0",
	}
	fmt.Printf("$ %s %s\n", filepath.Join(d.bin, "tidekeeper"), strings.Join(args, " "))
	command := exec.Command(filepath.Join(d.bin, "tidekeeper"), args...)
	command.Stdout, command.Stderr = log, log
	// In a separate process group, the manager does not receive Ctrl-C: the demo stops it.
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	d.manager, err = sandbox.Start(command)
	return err
}

// openPage starts the dashboard, which opens its page in a browser and prints a link.
func (d *demo) openPage() (err error) {
	command := exec.Command(filepath.Join(d.bin, "kubectl-tide"), "dashboard", "--kubeconfig", d.kubeconfig())
	command.Stdout, command.Stderr = os.Stdout, os.Stderr
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	d.page, err = sandbox.Start(command)
	return err
}

// kubectl runs kubectl with the given arguments, and prints the command and its output.
func (d *demo) kubectl(ctx context.Context, args ...string) error {
	fmt.Printf("$ kubectl %s\n", quoted(args))
	out, err := d.sandbox.Kubectl(ctx, "", args...)
	fmt.Print(out)
	return err
}

// quoted formats a command's arguments for display, with quotes where a shell needs them.
func quoted(args []string) string {
	typed := make([]string, len(args))
	for i, arg := range args {
		if typed[i] = arg; strings.ContainsAny(arg, " *[]") {
			typed[i] = "'" + arg + "'"
		}
	}
	return strings.Join(typed, " ")
}

// read gets an object or a list as JSON and decodes it into a value.
func (d *demo) read(ctx context.Context, into any, args ...string) error {
	out, err := d.sandbox.Kubectl(ctx, "", append([]string{"get", "-o", "json"}, args...)...)
	if err != nil {
		return err
	}
	return json.Unmarshal([]byte(out), into)
}

// until waits until check returns nil, then prints how long that took. Each step verifies its
// effect with it: if check still fails after patience, the demo fails.
func (d *demo) until(ctx context.Context, what string, check func() error) error {
	if d.manager != nil {
		var cancel context.CancelFunc
		ctx, cancel = d.manager.Context(ctx)
		defer cancel()
	}
	start := time.Now()
	if err := sandbox.Wait(ctx, patience, what, check); err != nil {
		if d.manager != nil && !d.manager.Running() {
			err = fmt.Errorf("%w; the manager's log is %s", err, d.logFile())
		}
		return err
	}
	fmt.Printf("  ✓ %s (%.1f s)\n", what, time.Since(start).Seconds())
	return nil
}
