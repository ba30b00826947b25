// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

// Package child starts commands that end with the process that started them,
// even if that process is killed.
package child

import (
	"os/exec"
	"runtime"
	"sync"
	"syscall"
)

// thread runs functions on a thread that lives as long as this process. Linux kills a child with
// Pdeathsig when the thread ends that started it, and Go ends threads.
var thread = sync.OnceValue(func() chan<- func() {
	functions := make(chan func())
	go func() {
		runtime.LockOSThread()
		for function := range functions {
			function()
		}
	}()
	return functions
})

// Start starts a command, like [exec.Cmd.Start]. The command is killed when this process ends.
func Start(command *exec.Cmd) error {
	if command.SysProcAttr == nil {
		command.SysProcAttr = &syscall.SysProcAttr{}
	}
	command.SysProcAttr.Pdeathsig = syscall.SIGKILL
	started := make(chan error)
	thread() <- func() { started <- command.Start() }
	return <-started
}
