// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"strings"

	"tidekeeper.dev/tidekeeper/sandbox/internal/component"
)

var minorVersion = regexp.MustCompile(`^1\.[0-9]+$`)

// Release is the minor release of Kubernetes, such as 1.34, whose control plane runs. It is "" for
// the compiled-in control plane.
type Release string

// program returns the path of the release's control plane binary, which is in the same directory as
// this binary. The path is "" if the compiled-in control plane is used.
func (r Release) program() (string, error) {
	if r == "" {
		return "", nil
	}
	if !minorVersion.MatchString(string(r)) {
		return "", fmt.Errorf("--kubernetes %q: want a version like 1.34", string(r))
	}
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	path := filepath.Join(filepath.Dir(self), "kubernetes-"+string(r))
	_, err = os.Stat(path)
	if err != nil && strings.HasPrefix(KubernetesVersion(), "v"+string(r)+".") {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("--kubernetes %s: there is no %s: build it with 'make build-kubernetes KUBERNETES=%s', which takes some minutes", r, path, r)
	}
	return path, nil
}

// version returns the full version of the release, such as v1.34.4. It runs the binary of the
// release with --version, unless the release is compiled in.
func (r Release) version() (string, error) {
	path, err := r.program()
	if err != nil || path == "" {
		return KubernetesVersion(), err
	}
	command := exec.Command(path, "--version")
	command.Args[0] = component.APIServer
	out, err := command.Output()
	if err != nil {
		return "", fmt.Errorf("--kubernetes %s: %s --version: %w", r, path, err)
	}
	version, ok := strings.CutPrefix(strings.TrimSpace(string(out)), "Kubernetes ")
	if !ok || !strings.HasPrefix(version, "v"+string(r)+".") {
		return "", fmt.Errorf("--kubernetes %s: %s is not that release: it says %q", r, path, strings.TrimSpace(string(out)))
	}
	return version, nil
}

// checkRelease returns an error if the release is not available or is incompatible with the other
// options.
func (o Options) checkRelease() error {
	if program, err := o.Kubernetes.program(); err != nil || program == "" {
		return err
	}
	if o.EmulatedVersion != "" {
		return errors.New("--emulated-version is for the release that is compiled in: leave it or --kubernetes out")
	}
	if o.RealNodes > 0 {
		return errors.New("real nodes have the kubelet of the release that is compiled in: leave --real-nodes or --kubernetes out")
	}
	return nil
}

// KubernetesVersion returns the version of the compiled-in control plane.
func KubernetesVersion() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, m := range info.Deps {
			if m.Path == "k8s.io/kubernetes" {
				return m.Version
			}
		}
	}
	return "unknown"
}
