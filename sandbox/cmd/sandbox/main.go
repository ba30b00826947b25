// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Command sandbox is a real Kubernetes control plane in a single binary.
//
// Started under the name of a program that is compiled into it (etcd, kube-apiserver, ...) it is
// that program; under any other name it is the sandbox command that runs them.
package main

import (
	"os"
	"path/filepath"

	"tidekeeper.dev/tidekeeper/sandbox/internal/cli"
	"tidekeeper.dev/tidekeeper/sandbox/internal/programs"
)

func main() {
	if main := programs.Lookup(filepath.Base(os.Args[0])); main != nil {
		os.Exit(main())
	}
	os.Exit(cli.Main())
}
