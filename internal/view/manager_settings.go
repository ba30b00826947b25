// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package view

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"tidekeeper.dev/tidekeeper/internal/restart/budget"
	"tidekeeper.dev/tidekeeper/internal/restart/forecast"
	"tidekeeper.dev/tidekeeper/internal/text"
)

// Settings holds the manager's settings that determine when restarts start.
type Settings struct {
	forecast.Limits
	// Assumed lists the flags with unknown values, for which the defaults are assumed.
	Assumed []string
}

// SettingsOf parses a manager's published settings, keyed by flag name. Missing and invalid
// settings get their defaults, and are listed in Assumed.
func SettingsOf(published map[string]string) Settings {
	s := Settings{Limits: forecast.Limits{
		MaxConcurrent: budget.DefaultMaxConcurrent, NamespaceShare: budget.DefaultNamespaceShare, SlotAge: budget.DefaultSlotAge,
	}}
	number := func(flag string, most int, into *int) {
		if n, err := strconv.Atoi(published[flag]); err == nil && n >= 1 && n <= most {
			*into = n
		} else {
			s.Assumed = append(s.Assumed, flag)
		}
	}
	number(budget.FlagMaxConcurrent, 100_000, &s.MaxConcurrent)
	number(budget.FlagNamespaceShare, 100, &s.NamespaceShare)
	if age, err := time.ParseDuration(published[budget.FlagSlotAge]); err == nil && age > 0 {
		s.SlotAge = age
	} else {
		s.Assumed = append(s.Assumed, budget.FlagSlotAge)
	}
	return s
}

// Values returns the settings as flag values, keyed by flag name.
func (s *Settings) Values() map[string]string {
	return map[string]string{
		budget.FlagMaxConcurrent: fmt.Sprint(s.MaxConcurrent), budget.FlagNamespaceShare: fmt.Sprint(s.NamespaceShare), budget.FlagSlotAge: FormatDuration(s.SlotAge),
	}
}

// AssumedText lists the given flags whose values are assumed, with the values. It returns "" if
// none is assumed.
func (s *Settings) AssumedText(flags ...string) string {
	var said []string
	values := s.Values()
	for _, flag := range flags {
		if slices.Contains(s.Assumed, flag) {
			said = append(said, "--"+flag+" "+values[flag])
		}
	}
	return strings.Join(said, ", ")
}

// FormatDuration formats a duration without trailing zero units.
func FormatDuration(d time.Duration) string { return text.Duration(d) }
