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
	// MaxConcurrent is the restart budget: the maximum number of restarts in progress. Other due restarts
	// wait, and the restart with the earliest tick comes first.
	MaxConcurrent int
	// NamespaceShare is the percentage of the budget, but at least one restart, that
	// one namespace may use.
	NamespaceShare int
	// SlotAge is the maximum time for which a restart uses a slot of the budget. A restart that takes longer
	// is followed until it completes, but other restarts may start beside it, so that restarts that never
	// complete cannot use up the budget. Raise it if restarts take longer and must not overlap; a tick with a
	// shorter startingDeadlineSeconds can then be missed.
	SlotAge time.Duration
	// ChangeSettle is the time for which the content of the ConfigMaps and Secrets that pods use must not
	// have changed before a restart for the change starts, so that a burst of edits leads to a single
	// restart.
	ChangeSettle time.Duration
	// Queries is the file that names a Prometheus and its queries. Any result of a query keeps restarts from
	// starting. With "" there are no queries.
	Queries string
}

// published lists the settings that determine when restarts start. The manager publishes them for forecasts.
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

// checkQueries reads the file of queries at startup, so that the manager does not start with a mistake in it.
func checkQueries(file string) error {
	if file == "" {
		return nil
	}
	_, err := query.Load(file)
	return err
}
