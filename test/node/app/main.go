// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Command app is the program in these tests' pods: a server that takes some time to become ready,
// and a few commands that the tests run in its containers.
package main

import (
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"
)

func main() {
	readyAfter := flag.Duration("ready-after", 0, "how long it takes until /readyz says yes")
	flag.Parse()
	var err error
	switch command := flag.Arg(0); command {
	case "":
		err = serve(*readyAfter)
	case "copy": // copies stdin to stdout
		_, err = io.Copy(os.Stdout, os.Stdin)
	case "status": // prints /proc/self/status
		var text []byte
		if text, err = os.ReadFile("/proc/self/status"); err == nil {
			_, err = os.Stdout.Write(text)
		}
	case "refused": // reports whether the kernel rejects a system call that every process may make
		_, _, code := syscall.Syscall(syscall.SYS_KEYCTL, 0, 0, 0)
		fmt.Println(code == syscall.EPERM)
	case "write": // tries to write a file into the root directory
		err = os.WriteFile("/written", nil, 0o600)
	default:
		err = fmt.Errorf("no command %s", command)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(3)
	}
}

// serve runs the server until it receives SIGTERM. It logs its start and the first successful
// readiness probe.
func serve(readyAfter time.Duration) error {
	started := time.Now()
	fmt.Println("started")
	var first sync.Once
	http.HandleFunc("/readyz", func(w http.ResponseWriter, _ *http.Request) {
		if time.Since(started) < readyAfter {
			http.Error(w, "not yet", http.StatusServiceUnavailable)
			return
		}
		first.Do(func() { fmt.Println("ready") })
		fmt.Fprintln(w, "ok")
	})
	http.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		name, _ := os.Hostname()
		fmt.Fprintln(w, name)
	})
	asked := make(chan os.Signal, 1)
	signal.Notify(asked, syscall.SIGTERM)
	failed := make(chan error, 1)
	go func() {
		server := &http.Server{Addr: ":8080", ReadHeaderTimeout: time.Minute}
		failed <- server.ListenAndServe()
	}()
	select {
	case <-asked:
		return nil
	case err := <-failed:
		return err
	}
}
