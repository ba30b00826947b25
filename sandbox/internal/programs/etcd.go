// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package programs

import (
	"os"

	"go.etcd.io/etcd/server/v3/etcdmain"
)

func etcdMain() int {
	// etcdmain exits the process on failure, and returns after a graceful shutdown.
	etcdmain.Main(os.Args)
	return 0
}
