// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
)

// BinaryVariable is the name of an environment variable. If Options.Binary is empty, the variable
// contains the path of the sandbox program.
const BinaryVariable = "SANDBOX_BIN"

// Sandbox is a running control plane.
type Sandbox struct {
	// Dir is the data directory.
	Dir string
	// Kubeconfig is the path of the administrator's kubeconfig.
	Kubeconfig string
	// Webhooks holds the address and the certificate for a webhook server in this process. It is
	// nil unless [Install.LocalWebhooks] is set.
	Webhooks *Webhooks

	binary    string
	temporary bool
	greeting  string
}

// Up starts a sandbox and returns when it is ready.
func Up(ctx context.Context, o Options) (*Sandbox, error) {
	binary, err := o.binary(ctx)
	if err != nil {
		return nil, err
	}
	s := &Sandbox{Dir: o.Dir, binary: binary}
	if s.Dir == "" {
		s.temporary = true
		if s.Dir, err = os.MkdirTemp("", "sandbox-"); err != nil {
			return nil, err
		}
	}
	s.Kubeconfig = filepath.Join(s.Dir, "kubeconfig")
	args := []string{"up", "--detach"}
	if !o.Outlive {
		args = append(args, fmt.Sprintf("--owner=%d", os.Getpid()))
	}
	if s.greeting, err = s.Run(ctx, append(args, o.args()...)...); err != nil {
		if s.temporary {
			// Stop the sandbox. The command may have been interrupted after it had started the
			// sandbox.
			_, _ = s.Run(context.WithoutCancel(ctx), "down")
		}
		return nil, errors.Join(err, s.remove())
	}
	if err := s.install(ctx, o.Install); err != nil {
		return nil, errors.Join(err, s.Down(context.WithoutCancel(ctx)))
	}
	return s, nil
}

// install applies the objects that an Install lists to a new sandbox. If LocalWebhooks is set, it
// first redirects their webhooks to this process.
func (s *Sandbox) install(ctx context.Context, i Install) error {
	in := installer{kubectl: s.Kubectl}
	objects, err := in.read(ctx, i)
	if err != nil {
		return err
	}
	if i.LocalWebhooks {
		if s.Webhooks, err = newWebhooks(filepath.Join(s.Dir, "pki", "webhooks")); err != nil {
			return err
		}
		for _, o := range objects {
			s.Webhooks.redirect(o)
		}
	}
	return in.install(ctx, objects)
}

// Attach returns the sandbox that runs in the data directory of the options. That sandbox keeps
// running after this process exits, unless Down is called.
func Attach(ctx context.Context, o Options) (*Sandbox, error) {
	binary, err := o.binary(ctx)
	if err != nil {
		return nil, err
	}
	s := &Sandbox{Dir: o.Dir, Kubeconfig: filepath.Join(o.Dir, "kubeconfig"), binary: binary}
	if _, err := s.Status(ctx); err != nil {
		return nil, err
	}
	return s, nil
}

// binary returns the path of the sandbox program, and builds the program if necessary.
func (o Options) binary(ctx context.Context) (string, error) {
	if err := onLinux(); err != nil {
		return "", err
	}
	if o.Binary != "" {
		return o.Binary, nil
	}
	if path := os.Getenv(BinaryVariable); path != "" {
		return path, nil
	}
	if path, err := exec.LookPath("sandbox"); err == nil {
		return path, nil
	}
	return build(ctx)
}

// onLinux returns an error on systems other than Linux.
func onLinux() error { return supports(runtime.GOOS) }

func supports(system string) error {
	if system == "linux" {
		return nil
	}
	return fmt.Errorf("sandboxes run on Linux, and this is %s: run these tests in a container or a virtual machine (%w)", system, errors.ErrUnsupported)
}

// Greeting returns the text that `sandbox up` printed. It is empty after [Attach].
func (s *Sandbox) Greeting() string { return s.greeting }

// Down stops the sandbox, and removes its directory if [Up] created it.
func (s *Sandbox) Down(ctx context.Context) error {
	_, err := s.Run(ctx, "down")
	if s.Webhooks != nil {
		err = errors.Join(err, s.Webhooks.release())
	}
	return errors.Join(err, s.remove())
}

func (s *Sandbox) remove() error {
	if !s.temporary {
		return nil
	}
	return os.RemoveAll(s.Dir)
}

// Command returns a command of the sandbox program that acts on this sandbox, such as "component",
// "kill", "etcd". The caller must start it.
func (s *Sandbox) Command(ctx context.Context, args ...string) *exec.Cmd {
	// Every subcommand accepts --data-dir directly after its name.
	return exec.CommandContext(ctx, s.binary, append([]string{args[0], "--data-dir", s.Dir}, args[1:]...)...)
}

// Run runs a command of the sandbox program on this sandbox and returns its standard output. If the
// command fails, the error contains its standard error.
func (s *Sandbox) Run(ctx context.Context, args ...string) (string, error) {
	return run(s.Command(ctx, args...))
}

// Kubectl runs kubectl as the administrator with the given standard input, and returns its standard
// output. If kubectl fails, the error contains its standard error.
func (s *Sandbox) Kubectl(ctx context.Context, stdin string, args ...string) (string, error) {
	command := s.Command(ctx, append([]string{"kubectl"}, args...)...)
	command.Stdin = strings.NewReader(stdin)
	return run(command)
}

// UserKubeconfig returns a kubeconfig for a user in the given groups, who has the permissions that
// RBAC grants to this user and these groups.
func (s *Sandbox) UserKubeconfig(ctx context.Context, user string, groups ...string) ([]byte, error) {
	args := []string{"kubeconfig", "--user=" + user}
	for _, group := range groups {
		args = append(args, "--group="+group)
	}
	text, err := s.Run(ctx, args...)
	return []byte(text), err
}

// Status returns the sandbox's status, or an error if the sandbox is not running.
func (s *Sandbox) Status(ctx context.Context) (Status, error) {
	text, err := s.Run(ctx, "status", "-o", "json")
	if err != nil {
		return Status{}, err
	}
	var status Status
	if err := json.Unmarshal([]byte(text), &status); err != nil {
		return Status{}, fmt.Errorf("the status of the sandbox: %w", err)
	}
	return status, nil
}

func run(command *exec.Cmd) (string, error) {
	var stdout, stderr bytes.Buffer
	command.Stdout, command.Stderr = &stdout, &stderr
	if err := command.Run(); err != nil {
		return stdout.String(), fmt.Errorf("%s: %w\n%s", strings.Join(command.Args, " "), err, stderr.String())
	}
	return stdout.String(), nil
}
