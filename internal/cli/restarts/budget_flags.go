// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package restarts

import (
	"cmp"
	"slices"

	"github.com/spf13/pflag"

	"tidekeeper.dev/tidekeeper/internal/cli/cmdutil"
	"tidekeeper.dev/tidekeeper/internal/options"
	"tidekeeper.dev/tidekeeper/internal/restart/budget"
	"tidekeeper.dev/tidekeeper/internal/view"
)

// budgetFlags holds the settings of the manager's restart budget. The command's flags take
// precedence over the values that the manager published in its lease, which take precedence over
// the manager's defaults.
type budgetFlags struct {
	maxConcurrent, namespaceShare int
	slotAge                       cmdutil.Duration

	given *pflag.FlagSet
}

// addTo adds the flags for the restart budget to a flag set, with the manager's defaults.
func (b *budgetFlags) addTo(f *pflag.FlagSet) {
	b.given = f
	b.slotAge = cmdutil.Duration{Duration: budget.DefaultSlotAge, Max: budget.LongestSlotAge}
	f.IntVar(&b.maxConcurrent, budget.FlagMaxConcurrent, budget.DefaultMaxConcurrent, "maximum number of restarts in progress, instead of the value on the manager's lease")
	f.IntVar(&b.namespaceShare, budget.FlagNamespaceShare, budget.DefaultNamespaceShare, "maximum `percent` of the restart budget that one namespace may use, instead of the value on the manager's lease")
	options.SetRange(f, budget.FlagMaxConcurrent, concurrentRange)
	options.SetRange(f, budget.FlagNamespaceShare, shareRange)
	f.Var(&b.slotAge, budget.FlagSlotAge, "how long a restart counts towards the restart budget, instead of the value on the manager's lease")
}

// Accept the same ranges as the manager's flags.
var (
	concurrentRange = options.Between(1, budget.HighestMaxConcurrent)
	shareRange      = options.Between(1, budget.HighestNamespaceShare)
)

func (b *budgetFlags) validate() error {
	return cmp.Or(concurrentRange.Check(budget.FlagMaxConcurrent, b.maxConcurrent), shareRange.Check(budget.FlagNamespaceShare, b.namespaceShare))
}

// settings returns the settings that the manager published, overridden by the flags of the command.
func (b *budgetFlags) settings(m view.Manager) view.Settings {
	s := view.SettingsOf(m.Published)
	give := func(flag string, take func()) {
		if b.given.Changed(flag) {
			take()
			s.Assumed = slices.DeleteFunc(s.Assumed, func(assumed string) bool { return assumed == flag })
		}
	}
	give(budget.FlagMaxConcurrent, func() { s.MaxConcurrent = b.maxConcurrent })
	give(budget.FlagNamespaceShare, func() { s.NamespaceShare = b.namespaceShare })
	give(budget.FlagSlotAge, func() { s.SlotAge = b.slotAge.Duration })
	return s
}
