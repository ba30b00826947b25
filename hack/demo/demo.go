// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
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
)

// demo is the running cluster and manager.
type demo struct {
	root, dataDir, kubeconfig, logFile string

	sandboxUp bool
	manager   *manager
}

// manager is the manager's process.
type manager struct {
	process *os.Process
	ended   chan struct{}
}

func newDemo() (*demo, error) {
	root, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	for _, name := range []string{"sandbox", "tidekeeper"} {
		if _, err := os.Stat(filepath.Join(root, "bin", name)); err != nil {
			return nil, fmt.Errorf("there is no bin/%s here: run make demo in the root of the repository", name)
		}
	}
	// Not inside the repository: the path of a socket must be short.
	dir, err := os.MkdirTemp("", "tidekeeper-demo-")
	if err != nil {
		return nil, err
	}
	return &demo{
		root: root, dataDir: filepath.Join(dir, "sandbox"), kubeconfig: filepath.Join(dir, "kubeconfig"),
		logFile: filepath.Join(dir, "tidekeeper.log"),
	}, nil
}

// close stops what was started and removes what was made.
func (d *demo) close() error {
	var errs []error
	if d.manager != nil {
		fmt.Println("\nStopping the manager.")
		_ = d.manager.process.Signal(syscall.SIGTERM)
		select {
		case <-d.manager.ended:
		case <-time.After(30 * time.Second):
			_ = d.manager.process.Kill()
			errs = append(errs, errors.New("the manager did not stop within 30 s"))
		}
	}
	if d.sandboxUp {
		fmt.Println("Stopping the sandbox.")
		// Not the context of the run: that has ended if Ctrl-C was pressed.
		if _, err := d.output(context.Background(), "sandbox", "down", "--data-dir", d.dataDir); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(append(errs, os.RemoveAll(filepath.Dir(d.dataDir)))...)
}

// startSandbox starts the control plane.
func (d *demo) startSandbox(ctx context.Context) error {
	d.sandboxUp = true
	return d.show(ctx, "sandbox", "up", "--detach", "--nodes=5", "--data-dir", d.dataDir, "--kubeconfig", d.kubeconfig)
}

// startManager starts the manager beside the cluster.
func (d *demo) startManager() error {
	log, err := os.Create(d.logFile)
	if err != nil {
		return err
	}
	defer log.Close()
	args := []string{
		"--kubeconfig", d.kubeconfig, "--log-format=text", "--log-level=debug",
		"--metrics-bind-address=0", "--health-probe-bind-address=0",
	}
	fmt.Printf("$ bin/tidekeeper %s\n", strings.Join(args, " "))
	command := exec.Command(filepath.Join(d.root, "bin", "tidekeeper"), args...)
	command.Stdout, command.Stderr = log, log
	// Ctrl-C is for the demo alone, which stops its manager in order.
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := command.Start(); err != nil {
		return err
	}
	d.manager = &manager{process: command.Process, ended: make(chan struct{})}
	go func() {
		_ = command.Wait()
		close(d.manager.ended)
	}()
	return nil
}

// kubectl shows a kubectl command and what it prints.
func (d *demo) kubectl(ctx context.Context, args ...string) error {
	fmt.Printf("$ kubectl %s\n", quoted(args))
	out, err := d.output(ctx, "sandbox", append([]string{"kubectl", "--data-dir", d.dataDir}, args...)...)
	fmt.Print(out)
	return err
}

// quoted writes arguments as a person would type them.
func quoted(args []string) string {
	typed := make([]string, len(args))
	for i, arg := range args {
		if typed[i] = arg; strings.ContainsAny(arg, " *[]") {
			typed[i] = "'" + arg + "'"
		}
	}
	return strings.Join(typed, " ")
}

// show shows one of our own commands and what it prints.
func (d *demo) show(ctx context.Context, name string, args ...string) error {
	fmt.Printf("$ %s %s\n", name, strings.Join(args, " "))
	out, err := d.output(ctx, name, args...)
	fmt.Print(out)
	return err
}

func (d *demo) output(ctx context.Context, name string, args ...string) (string, error) {
	var out, wrong bytes.Buffer
	command := exec.CommandContext(ctx, filepath.Join(d.root, "bin", name), args...)
	command.Stdout, command.Stderr = &out, &wrong
	if err := command.Run(); err != nil {
		return out.String(), fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, strings.TrimSpace(wrong.String()))
	}
	return out.String(), nil
}

// read reads an object, or a list, as JSON into a value.
func (d *demo) read(ctx context.Context, into any, args ...string) error {
	out, err := d.output(ctx, "sandbox", append([]string{"kubectl", "--data-dir", d.dataDir, "get", "-o", "json"}, args...)...)
	if err != nil {
		return err
	}
	return json.Unmarshal([]byte(out), into)
}

// until waits until the check returns nil, and says how long that took. That
// is the proof of a step; its failure is the failure of the demo.
func (d *demo) until(ctx context.Context, what string, check func() error) error {
	start := time.Now()
	for {
		err := check()
		if err == nil {
			fmt.Printf("  ✓ %s (%.1f s)\n", what, time.Since(start).Seconds())
			return nil
		}
		if time.Since(start) > patience {
			return fmt.Errorf("not within %s: %s: %w", patience, what, err)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-d.managerEnded():
			return fmt.Errorf("the manager has ended: see its log, %s", d.logFile)
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// managerEnded is closed when the manager has ended, if it was started.
func (d *demo) managerEnded() <-chan struct{} {
	if d.manager == nil {
		return nil
	}
	return d.manager.ended
}
