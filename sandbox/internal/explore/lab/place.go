// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"context"
	"os"
	"regexp"
	"slices"

	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/operator"
	"tidekeeper.dev/tidekeeper/sandbox/internal/proxy"
)

// Operator returns an operator that connects to the sandbox's API server through the proxy `front`.
// It does not start the operator. It writes the kubeconfig and the Pod's files to paths that begin
// with `path`. The caller must call `end`, even after an error, to remove these files and close the
// webhook socket.
func (s *Sandbox) Operator(ctx context.Context, path string, command []string, front *proxy.Server, fail *regexp.Regexp) (_ *operator.Operator, end func(), err error) {
	var undo []func()
	end = func() {
		for _, do := range slices.Backward(undo) {
			do()
		}
	}
	l := s.lab
	kubeconfig, files, err := access(ctx, s.Config, front.Kubeconfig, l.account)
	if err != nil {
		return nil, end, err
	}
	file := path + ".kubeconfig"
	if err := os.WriteFile(file, kubeconfig, 0o600); err != nil {
		return nil, end, err
	}
	undo = append(undo, func() { _ = os.Remove(file) })
	made := &operator.Operator{Command: command, Kubeconfig: file, Bin: l.bin, Path: l.path(), Output: &operator.Output{Fail: fail}}
	if l.Alone {
		return made, end, nil
	}
	made.Environment, made.Serve, made.Networks = l.environment, front.Serve, &operator.Networks{}
	if made.Pod, err = l.pod(path+".pod", files, front.URL); err != nil {
		return nil, end, err
	}
	undo = append(undo, func() { _ = os.RemoveAll(made.Pod.Files) })
	if len(l.served) > 0 && !l.workload.HostNetwork {
		served, err := made.Networks.Serve(ctx, s.dir.ProgramSocket())
		if err != nil {
			return nil, end, err
		}
		undo = append(undo, served)
	}
	return made, end, nil
}

// Act performs an action, such as "kill" or "start", on a control plane component. The sandbox is
// not reused afterwards, because the component may have lost state.
func (s *Sandbox) Act(ctx context.Context, name, action string) error {
	s.spoilt = true
	return s.dir.Control().Act(ctx, name, action)
}
