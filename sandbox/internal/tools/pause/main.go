// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Command pause is PID 1 of each pod sandbox on a real node. It keeps the pod's namespaces alive
// until it receives a signal.
package main

import (
	"os"
	"os/signal"
	"syscall"
)

func main() {
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT, syscall.SIGCHLD)
	for s := range signals {
		if s != syscall.SIGCHLD {
			return
		}
		// In a pod with a shared process namespace, this process adopts orphaned processes and must
		// reap them.
		for {
			if pid, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil); pid <= 0 || err != nil {
				break
			}
		}
	}
}
