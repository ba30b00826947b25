// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"fmt"
	"os"
)

// AllFaults tells whether all faults are to be played, as FAULTS=all asks for, or
// the slice of them that all tests go with.
func AllFaults() bool { return os.Getenv("FAULTS") == "all" }

// checkFaults refuses any other value of FAULTS: it would play the slice, and seem
// to have played what was asked for.
func checkFaults() error {
	if value := os.Getenv("FAULTS"); value != "" && value != "all" {
		return fmt.Errorf("FAULTS=%q: must be all, or not given", value)
	}
	return nil
}
