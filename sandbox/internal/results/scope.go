// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package results

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"tidekeeper.dev/tidekeeper/sandbox/internal/state"
)

// Scope describes the objects and fields by which cases were judged, and the excluded objects and
// fields, as counted in baseline runs.
type Scope struct {
	// Judged lists the kinds of objects that were compared. Others is the number of kinds that had
	// no objects.
	Judged []Judged `json:"judged"`
	Others int      `json:"others"`
	// NotCompared lists the excluded objects and fields. Never holds the kinds of objects that no
	// run compares.
	NotCompared []NotCompared `json:"notCompared,omitempty"`
	Never       []string      `json:"never,omitempty"`
	// Masked lists fields of compared objects that were ignored.
	Masked []state.Masked `json:"masked,omitempty"`
	// Besides lists other limits of the verdict, one line each.
	Besides []string `json:"besides,omitempty"`
}

// Judged counts the compared objects of a kind and their fields.
type Judged struct {
	Resource string `json:"resource"`
	// Namespaces lists the namespaces of the compared objects. It is empty for cluster-scoped
	// objects.
	Namespaces []string `json:"namespaces,omitempty"`
	Objects    int      `json:"objects"`
	Fields     int      `json:"fields"`
}

// NotCompared counts objects, or fields of objects, that were excluded for the same reason.
type NotCompared struct {
	What    string `json:"what"`
	Why     string `json:"why"`
	Objects int    `json:"objects"`
	// Fields is the number of excluded fields, or 0 if entire objects were excluded.
	Fields int `json:"fields,omitempty"`
}

// merge returns the union of the scopes of two parts of a run. Either scope may be nil.
func (s *Scope) merge(other *Scope) *Scope {
	switch {
	case s == nil:
		return other
	case other == nil:
		return s
	}
	merged := &Scope{Others: min(s.Others, other.Others)}
	kinds := map[string]Judged{}
	for _, j := range slices.Concat(s.Judged, other.Judged) {
		known := kinds[j.Resource]
		j.Namespaces = union(known.Namespaces, j.Namespaces)
		j.Objects, j.Fields = max(known.Objects, j.Objects), max(known.Fields, j.Fields)
		kinds[j.Resource] = j
	}
	for _, resource := range slices.Sorted(maps.Keys(kinds)) {
		merged.Judged = append(merged.Judged, kinds[resource])
	}
	for _, n := range slices.Concat(s.NotCompared, other.NotCompared) {
		i := slices.IndexFunc(merged.NotCompared, func(known NotCompared) bool { return known.What == n.What && known.Why == n.Why })
		if i < 0 {
			merged.NotCompared = append(merged.NotCompared, n)
			continue
		}
		known := &merged.NotCompared[i]
		known.Objects, known.Fields = max(known.Objects, n.Objects), max(known.Fields, n.Fields)
	}
	masked := state.NewMask()
	masked.Add(s.Masked...)
	masked.Add(other.Masked...)
	merged.Masked = masked.All()
	merged.Never, merged.Besides = union(s.Never, other.Never), union(s.Besides, other.Besides)
	return merged
}

// many formats a number with a noun, such as "1 object" or "2 objects".
func many(n int, thing string) string {
	if n != 1 {
		thing += "s"
	}
	return fmt.Sprintf("%d %s", n, thing)
}

func union(one, other []string) []string {
	return slices.Compact(slices.Sorted(slices.Values(slices.Concat(one, other))))
}

// judgedLines lists the kinds of compared objects, with their numbers of objects and fields.
func (s *Scope) judgedLines() []string {
	var namespaces []string
	objects, fields := 0, 0
	var kinds []string
	for _, j := range s.Judged {
		objects, fields = objects+j.Objects, fields+j.Fields
		namespaces = append(namespaces, j.Namespaces...)
		where := ""
		if len(j.Namespaces) > 0 {
			where = " in " + strings.Join(j.Namespaces, ", ")
		}
		kinds = append(kinds, fmt.Sprintf("%s: %s%s, %s", j.Resource, many(j.Objects, "object"), where, many(j.Fields, "field")))
	}
	total := fmt.Sprintf("%s of %s of %s, in %s and in none", many(fields, "field"), many(objects, "object"), many(len(s.Judged), "kind"), many(len(union(namespaces, nil)), "namespace"))
	lines := append([]string{total}, kinds...)
	if s.Others > 0 {
		lines = append(lines, fmt.Sprintf("%s more, of which there was no object", many(s.Others, "kind")))
	}
	return lines
}

// notComparedLines lists the excluded objects and fields, with the reasons.
func (s *Scope) notComparedLines() []string {
	var lines []string
	for _, n := range s.NotCompared {
		if n.Fields > 0 {
			lines = append(lines, fmt.Sprintf("%s, %s of %s: %s", n.What, many(n.Fields, "field"), many(n.Objects, "object"), n.Why))
		} else {
			lines = append(lines, fmt.Sprintf("%s, %s: %s", n.What, many(n.Objects, "object"), n.Why))
		}
	}
	if len(s.Never) > 0 {
		lines = append(lines, fmt.Sprintf("%s, never: %s", many(len(s.Never), "kind"), strings.Join(s.Never, ", ")))
	}
	return lines
}
