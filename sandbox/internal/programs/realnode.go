// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package programs

import (
	"fmt"
	"os"

	"tidekeeper.dev/tidekeeper/sandbox/internal/realnode"
)

func realNodeMain() int {
	err := fmt.Errorf("want the file of a node, got %d arguments", len(os.Args)-1)
	if len(os.Args) == 2 {
		err = realnode.Run(os.Args[1])
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		return 1
	}
	return 0
}
