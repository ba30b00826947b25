// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package restart

import (
	"time"

	"tidekeeper.dev/tidekeeper/internal/options"
	"tidekeeper.dev/tidekeeper/internal/restart/budget"
	"tidekeeper.dev/tidekeeper/internal/restart/decision"
	"tidekeeper.dev/tidekeeper/internal/restart/query"
)

// Options are the settings of scheduled restarts.
type Options struct {
	// Concurrency is the maximum number of ScheduledRestarts that are reconciled at
	// the same time.
	Concurrency int
	// MaxConcurrent is the restart budget: the maximum number of restarts in progress.
	// Others that are due wait, and the one with the earliest tick comes first.
	MaxConcurrent int
	// NamespaceShare is the percentage of the budget, but at least one restart, that
	// one namespace may use.
	NamespaceShare int
	// SlotAge is how long a restart uses a slot of the budget. One that takes longer
	// is followed until it completes, but others may start beside it, so that restarts
	// that never complete cannot use up the budget. Raise it if restarts take longer and must
	// not overlap; a tick with a shorter startingDeadlineSeconds can then be missed.
	SlotAge time.Duration
	// ChangeSettle is how long the content of the ConfigMaps and Secrets that pods use must not
	// have changed before they are restarted for it, so that a burst of edits is one restart.
	ChangeSettle time.Duration
	// Queries is a file with a Prometheus and queries, of which any result keeps restarts from
	// being started; "" means that there are none.
	Queries string
}

// published are the settings that decide when a restart starts.
var published = []string{budget.FlagMaxConcurrent, budget.FlagNamespaceShare, budget.FlagSlotAge}

// group declares the options.
func (o *Options) group() *options.Group {
	g := options.NewGroup("scheduled restarts")
	g.Int(&o.Concurrency, "restart-concurrency", 64, options.Between(1, 1024),
		"maximum number of ScheduledRestarts reconciled concurrently")
	g.Int(&o.MaxConcurrent, budget.FlagMaxConcurrent, budget.DefaultMaxConcurrent, options.Between(1, budget.HighestMaxConcurrent),
		"restart budget: maximum number of restarts in progress; other due restarts wait, and the earliest tick goes first")
	g.Int(&o.NamespaceShare, budget.FlagNamespaceShare, budget.DefaultNamespaceShare, options.Between(1, budget.HighestNamespaceShare),
		"maximum `percent` of the restart budget that one namespace may use; at least one restart")
	g.Duration(&o.SlotAge, budget.FlagSlotAge, budget.DefaultSlotAge, options.Between(time.Second, budget.LongestSlotAge),
		"how long a restart counts towards the restart budget; a restart that takes longer continues, but frees its slot for others")
	g.Duration(&o.ChangeSettle, "restart-change-settle", decision.DefaultChangeSettle, options.Between(time.Second, 10*time.Minute),
		"minimum time since the last change of a ConfigMap or Secret before pods that use it are restarted")
	g.String(&o.Queries, "restart-queries", "", checkQueries,
		"`file` with a Prometheus server and queries to run before a restart starts: any result, and any error, holds the restart back; see docs/concepts/queries.md")
	return g
}

// checkQueries reads a file of queries, so that a mistake in it ends the manager at once.
func checkQueries(file string) error {
	if file == "" {
		return nil
	}
	_, err := query.Load(file)
	return err
}
