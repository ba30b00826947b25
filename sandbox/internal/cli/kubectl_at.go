// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"tidekeeper.dev/tidekeeper/sandbox/internal/cluster"
	"tidekeeper.dev/tidekeeper/sandbox/internal/component"
	"tidekeeper.dev/tidekeeper/sandbox/internal/past"
)

// parseRevision parses the value of the --at flag, an etcd revision.
func parseRevision(at string) (int64, error) {
	revision, err := strconv.ParseInt(at, 10, 64)
	if err != nil || revision < 1 {
		return 0, fmt.Errorf("--at %q: want a revision, a number like the metadata.resourceVersion of an object", at)
	}
	return revision, nil
}

// kubectlAt runs kubectl against the state of the sandbox at an earlier revision.
func kubectlAt(ctx context.Context, dir cluster.Dir, revision int64, args []string) (err error) {
	config, err := dir.RESTConfig()
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	now, err := client.CoreV1().Namespaces().List(ctx, metav1.ListOptions{Limit: 1})
	if err != nil {
		return err
	}
	if present, err := strconv.ParseInt(now.ResourceVersion, 10, 64); err == nil && revision > present {
		return fmt.Errorf("there is no revision %d yet: the last one is %d", revision, present)
	}
	kubeconfig, server, err := past.Serve(config, revision)
	if err != nil {
		return err
	}
	defer server.Close()
	file, err := os.CreateTemp("", "sandbox-at-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.Remove(file.Name())) }()
	_, err = file.Write(kubeconfig)
	if err := errors.Join(err, file.Close()); err != nil {
		return err
	}
	kubectl := exec.CommandContext(ctx, "/proc/self/exe", args...)
	kubectl.Args[0] = component.Kubectl
	kubectl.Env = append(os.Environ(), "KUBECONFIG="+file.Name())
	kubectl.Stdin, kubectl.Stdout, kubectl.Stderr = os.Stdin, os.Stdout, os.Stderr
	err = kubectl.Run()
	if ended := (*exec.ExitError)(nil); errors.As(err, &ended) && ended.ExitCode() > 0 {
		return exitError(ended.ExitCode())
	}
	return err
}
