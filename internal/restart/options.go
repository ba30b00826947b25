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

// Options configure the controller "scheduled-restart".
type Options struct {
	// Concurrency is the maximum number of ScheduledRestarts that are reconciled concurrently.
	Concurrency int
	// MaxConcurrent is the restart budget: the maximum number of restarts in progress that hold a
	// slot. Other due restarts wait for a slot.
	MaxConcurrent int
	// NamespaceShare is the maximum percentage of the restart budget that one namespace may use. A
	// namespace may always use at least one slot.
	NamespaceShare int
	// SlotAge is the maximum time for which a restart holds a slot of the budget; 0 means until the
	// restart ends. A restart that takes longer is still followed until it completes, but other
	// restarts may start in parallel, so that restarts that never complete cannot exhaust the
	// budget. Set a higher value if restarts take longer and must not overlap. The deadline of a
	// due restart (startingDeadlineSeconds) may then pass while the restart waits for a slot.
	SlotAge time.Duration
	// ChangeSettle is the time for which the ConfigMaps and Secrets that pods use must remain
	// unchanged before a restart for the change starts. Several edits in quick succession then lead
	// to a single restart.
	ChangeSettle time.Duration
	// Queries is the path of the file that configures a Prometheus server and its queries. While a
	// query returns results, it keeps restarts from starting. "" means no queries.
	Queries string
}

// published lists the flags that determine when restarts start. The manager publishes their values,
// so that forecasts can use them.
var published = []string{budget.FlagMaxConcurrent, budget.FlagNamespaceShare, budget.FlagSlotAge}

// group declares the command-line options.
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

// checkQueries reads the query file at startup, so that the manager does not start with an invalid
// file.
func checkQueries(file string) error {
	if file == "" {
		return nil
	}
	_, err := query.Load(file)
	return err
}
