// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Command pause is the first process of each pod on a real node: it keeps the namespaces of the pod alive
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
		// In a pod with a shared process namespace, orphaned processes become its children.
		for {
			if pid, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil); pid <= 0 || err != nil {
				break
			}
		}
	}
}
