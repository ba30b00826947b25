// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

// Package child starts commands that are killed when the process that started them ends, even if
// that process is itself killed.
package child

import (
	"os/exec"
	"runtime"
	"sync"
	"syscall"
)

// thread returns a channel of functions. They run on an OS thread that lives as long as this
// process. Other threads are unsuitable for starting a child with Pdeathsig: Linux kills the child
// when the starting thread exits, and the Go runtime may terminate threads at any time.
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
