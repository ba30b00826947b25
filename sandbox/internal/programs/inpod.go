// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package programs

import (
	"fmt"
	"os"

	"tidekeeper.dev/tidekeeper/sandbox/internal/incluster"
)

func inPodMain() int { return mainOf(incluster.Exec) }

func sweeperMain() int { return mainOf(incluster.Sweep) }

// mainOf calls the function "do" with the program's arguments, and prints its error, if any. It
// returns the exit code of the program: 1 after an error, or else 0.
func mainOf(do func(args []string) error) int {
	if err := do(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		return 1
	}
	return 0
}
