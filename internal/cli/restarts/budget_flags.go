// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package restarts

import (
	"fmt"
	"time"

	"github.com/spf13/pflag"

	"tidekeeper.dev/tidekeeper/internal/cli/cmdutil"
	"tidekeeper.dev/tidekeeper/internal/restart/budget"
)

// The settings of the manager, which the plugin cannot read.
const (
	flagMaxConcurrent  = "max-concurrent-restarts"
	flagNamespaceShare = "restart-namespace-share"
	flagSlotAge        = "restart-slot-age"
)

// budgetFlags are the manager's settings of the budget.
type budgetFlags struct {
	maxConcurrent, namespaceShare int
	slotAge                       cmdutil.Duration
}

// addTo adds the flags with the manager's defaults.
func (b *budgetFlags) addTo(f *pflag.FlagSet) {
	b.slotAge = cmdutil.Duration{Duration: budget.DefaultSlotAge, Max: 24 * time.Hour}
	f.IntVar(&b.maxConcurrent, flagMaxConcurrent, budget.DefaultMaxConcurrent, "how many restarts the manager has in progress at once")
	f.IntVar(&b.namespaceShare, flagNamespaceShare, budget.DefaultNamespaceShare, "the `percent` of them that one namespace may have")
	f.Var(&b.slotAge, flagSlotAge, "how long a restart counts towards them")
}

func (b *budgetFlags) validate() error {
	switch {
	case b.maxConcurrent < 1:
		return fmt.Errorf("--%s=%d: must be at least 1", flagMaxConcurrent, b.maxConcurrent)
	case b.namespaceShare < 1 || b.namespaceShare > 100:
		return fmt.Errorf("--%s=%d: must be from 1 to 100", flagNamespaceShare, b.namespaceShare)
	}
	return nil
}
