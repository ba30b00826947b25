// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package programs

import (
	"os"

	"go.etcd.io/etcd/server/v3/etcdmain"
)

func etcdMain() int {
	// etcdmain ends the process itself when it fails; it returns after an
	// orderly stop.
	etcdmain.Main(os.Args)
	return 0
}
