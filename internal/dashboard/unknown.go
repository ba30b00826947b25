// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"net/http"
	"slices"
	"strings"
)

// unknownError is the error for numbers that cannot be computed because some objects could not be
// read.
type unknownError struct {
	why string
	// forbidden is set if the objects could not be read because the user is not allowed to list
	// them.
	forbidden bool
}

func (e *unknownError) Error() string { return "not known: " + e.why }

// status returns the HTTP status code for the error.
func (e *unknownError) status() int {
	if e.forbidden {
		return http.StatusForbidden
	}
	return http.StatusServiceUnavailable
}

// unknown returns an error if the objects of any of the kinds could not be read. If the user lacks
// the permission, the error includes the command that checks the permission.
func (s *snapshot) unknown(kinds ...string) error {
	for _, kind := range kinds {
		if why := s.problems[kind]; why != "" {
			return &unknownError{why + s.check(kind), s.checks[kind] != ""}
		}
	}
	return nil
}

// check returns the end of an error message about a kind. It names the command with which the user
// can check the missing permission. It is "" if no permission is missing.
func (s *snapshot) check(kind string) string {
	if s.checks[kind] == "" {
		return ""
	}
	return ", as " + s.checks[kind] + " shows"
}

// forecastKinds returns the kinds that the forecast depends on. It includes pods only if a
// ScheduledRestart limits the age of pods, and namespaces only if there are Freezes, which may
// select namespaces.
func (s *snapshot) forecastKinds() []string {
	return slices.DeleteFunc(slices.Clone(restartsKinds), func(kind string) bool {
		return kind == kindPods && !s.limitsPodAge() || kind == kindNamespaces && len(s.objects[kindFreezes]) == 0
	})
}

// forecastWithout names the kinds that could not be read and that the forecast therefore does not
// take into account. The forecast assumes that workloads that could not be read are healthy.
func (s *snapshot) forecastWithout() string {
	names := slices.DeleteFunc(s.forecastKinds(), func(kind string) bool { return kind == kindRestarts || s.problems[kind] == "" })
	slices.Sort(names)
	return strings.Join(names, ", ")
}
