// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"fmt"
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"tidekeeper.dev/tidekeeper/internal/cache/podcache"
	"tidekeeper.dev/tidekeeper/internal/cache/readback"
	"tidekeeper.dev/tidekeeper/internal/controller"
	"tidekeeper.dev/tidekeeper/internal/evictionresponder"
	"tidekeeper.dev/tidekeeper/internal/fairness"
	"tidekeeper.dev/tidekeeper/internal/freeze"
	"tidekeeper.dev/tidekeeper/internal/maintenance"
	"tidekeeper.dev/tidekeeper/internal/nodepool"
	"tidekeeper.dev/tidekeeper/internal/optin"
	"tidekeeper.dev/tidekeeper/internal/podcount"
	"tidekeeper.dev/tidekeeper/internal/pods/podstartup"
	"tidekeeper.dev/tidekeeper/internal/restart"
)

// controllers returns the definitions of this binary's controllers, each with its default options.
func controllers() []controller.Definition {
	return []controller.Definition{
		nodepool.Controller(),
		restart.Controller(),
		optin.Controller(),
		podstartup.Controller(),
		podcount.Controller(),
		freeze.Controller(),
		maintenance.Controller(),
		evictionresponder.Controller(),
	}
}

// RegisterMetrics registers the metrics of the manager and of all controllers without values, to
// generate docs/reference.
func RegisterMetrics(registry prometheus.Registerer) error {
	if err := readback.RegisterMetrics(registry); err != nil {
		return fmt.Errorf("register the metrics of the client: %w", err)
	}
	if err := fairness.RegisterMetrics(registry); err != nil {
		return fmt.Errorf("register the metrics of namespaces: %w", err)
	}
	if err := podcache.RegisterMetrics(registry); err != nil {
		return fmt.Errorf("register the metrics of the cache: %w", err)
	}
	for _, c := range controllers() {
		if c.RegisterMetrics == nil {
			continue
		}
		if err := c.RegisterMetrics(registry); err != nil {
			return fmt.Errorf("register the metrics of %s: %w", c.Name, err)
		}
	}
	return nil
}

// chooseControllers returns the known controllers that the selectors choose, in their original
// order. A selector is "*" for all controllers that are on by default, a controller's name, or a
// name with the prefix "-" to exclude that controller. A name takes precedence over "*", and the
// first of several selectors for a controller counts. kube-controller-manager has the same syntax.
// An unknown name or an empty result is an error.
func chooseControllers(selectors []string, known []controller.Definition) ([]controller.Definition, error) {
	names := namesOf(known)
	star := false
	chosen := map[string]bool{}
	for _, s := range selectors {
		if s == "*" {
			star = true
			continue
		}
		name, not := strings.CutPrefix(s, "-")
		if !slices.Contains(names, name) {
			return nil, fmt.Errorf("--%s=%s: there is no controller %q; there are: %s",
				FlagControllers, strings.Join(selectors, ","), name, strings.Join(names, ", "))
		}
		if _, decided := chosen[name]; !decided {
			chosen[name] = !not
		}
	}

	var result []controller.Definition
	for _, c := range known {
		on, decided := chosen[c.Name]
		if !decided {
			on = star && !c.OffByDefault
		}
		if on {
			result = append(result, c)
		}
	}
	if len(result) == 0 {
		return nil, fmt.Errorf("--%s=%s: leaves no controller to run; there are: %s",
			FlagControllers, strings.Join(selectors, ","), strings.Join(names, ", "))
	}
	return result, nil
}

// chooseWatches returns the chosen controllers without the optional watches that are not in
// `names`. It returns an error for an unknown name, and for an optional watch that no chosen
// controller has.
func chooseWatches(names []string, chosen, known []controller.Definition) ([]controller.Definition, error) {
	for _, name := range names {
		has := func(c controller.Definition) bool {
			return slices.ContainsFunc(c.OptionalWatches, func(w controller.OptionalWatch) bool { return w.Name == name })
		}
		i := slices.IndexFunc(known, has)
		if i < 0 {
			return nil, fmt.Errorf("--%s=%s: there is no optional watch %q; there are: %s",
				FlagOptionalWatches, strings.Join(names, ","), name, strings.Join(optionalWatches(known), ", "))
		}
		if !slices.ContainsFunc(chosen, has) {
			return nil, fmt.Errorf("--%s=%s: only the controller %s watches %s, and --%s leaves it out",
				FlagOptionalWatches, strings.Join(names, ","), known[i].Name, name, FlagControllers)
		}
	}
	chosen = slices.Clone(chosen)
	for i, c := range chosen {
		chosen[i].OptionalWatches = slices.DeleteFunc(slices.Clone(c.OptionalWatches), func(w controller.OptionalWatch) bool {
			return !slices.Contains(names, w.Name)
		})
	}
	return chosen, nil
}

// optionalWatches returns the names of the controllers' optional watches.
func optionalWatches(controllers []controller.Definition) (names []string) {
	for _, c := range controllers {
		for _, w := range c.OptionalWatches {
			names = append(names, w.Name)
		}
	}
	return names
}

func namesOf(controllers []controller.Definition) []string {
	names := make([]string, len(controllers))
	for i, c := range controllers {
		names[i] = c.Name
	}
	return names
}

// namespacedNames returns the names of the controllers that --namespaces can limit.
func namespacedNames(controllers []controller.Definition) []string {
	return namesOf(slices.DeleteFunc(slices.Clone(controllers), func(c controller.Definition) bool { return !c.Namespaced }))
}
