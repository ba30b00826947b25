// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package component

import (
	"fmt"
	"os"

	"tidekeeper.dev/tidekeeper/sandbox/internal/incluster"
)

func inPodMain() int {
	if err := incluster.Exec(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		return 1
	}
	return 0
}
