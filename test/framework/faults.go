// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"fmt"
	"os"
)

// AllFaults reports whether all faults are to be injected, as with FAULTS=all, and not
// only the subset that runs by default.
func AllFaults() bool { return os.Getenv("FAULTS") == "all" }

// checkFaults refuses any other value of FAULTS: it would run the subset while the
// user expects something else.
func checkFaults() error {
	if value := os.Getenv("FAULTS"); value != "" && !AllFaults() {
		return fmt.Errorf("FAULTS=%q: must be all, or not given", value)
	}
	return nil
}
