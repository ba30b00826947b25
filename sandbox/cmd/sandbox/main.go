// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Command sandbox runs a real Kubernetes control plane from a single binary.
//
// When the binary is started under the name of a program that is compiled into it (etcd,
// kube-apiserver, ...), it acts as that program. Under any other name it is the sandbox command,
// which runs these programs.
package main

import (
	"os"
	"path/filepath"

	"tidekeeper.dev/tidekeeper/sandbox/internal/cli"
	"tidekeeper.dev/tidekeeper/sandbox/internal/programs"
)

func main() {
	name := filepath.Base(os.Args[0])
	if main := programs.Lookup(name); main != nil {
		// The program was started as /proc/self/exe, and tools such as top would call it "exe".
		_ = os.WriteFile("/proc/self/comm", []byte(name), 0)
		os.Exit(main())
	}
	os.Exit(cli.Main())
}
