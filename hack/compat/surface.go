// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// thing is something that users depend on by its name.
type thing struct {
	// Type is what a value looks like: the type of a flag or of a JSON field, the labels of a metric.
	Type string `json:"type,omitempty"`
	// Default is what applies without the user's word, or the value that the name stands for.
	Default string `json:"default,omitempty"`
	// Min and Max are the range of a flag.
	Min string `json:"min,omitempty"`
	Max string `json:"max,omitempty"`
}

// surface is all that users depend on beside the kinds, by names such as "flag tidekeeper --namespaces".
type surface map[string]thing

// compareSurfaces returns what is gone, and what means something else. More is never a break.
func compareSurfaces(before, after surface) []breach {
	var found []breach
	for _, name := range slices.Sorted(maps.Keys(before)) {
		was := before[name]
		is, ok := after[name]
		switch {
		case !ok:
			found = append(found, breach{name, "is gone"})
		case was.Type != is.Type:
			found = append(found, breach{name, fmt.Sprintf("was %q, and is %q", was.Type, is.Type)})
		case was.Default != is.Default:
			found = append(found, breach{name, fmt.Sprintf("the default was %s, and is %s", orNone(was.Default), orNone(is.Default))})
		case is.Min != "" && (was.Min == "" || !atMost(is.Min, was.Min)), is.Max != "" && (was.Max == "" || !atMost(was.Max, is.Max)):
			found = append(found, breach{name, fmt.Sprintf("%s to %s were accepted, and are %s to %s", orNone(was.Min), orNone(was.Max), orNone(is.Min), orNone(is.Max))})
		}
	}
	return found
}

// atMost reports whether a bound, a duration or a number, is at most another.
func atMost(a, b string) bool {
	if a == b {
		return true
	}
	if x, err := time.ParseDuration(a); err == nil {
		if y, err := time.ParseDuration(b); err == nil {
			return x <= y
		}
	}
	x, errA := strconv.ParseFloat(a, 64)
	y, errB := strconv.ParseFloat(b, 64)
	return errA == nil && errB == nil && x <= y
}

// encode writes a thing a line, so that a change of a recorded surface is easy to read.
func (s surface) encode() ([]byte, error) {
	var lines []string
	for _, name := range slices.Sorted(maps.Keys(s)) {
		value, err := json.Marshal(s[name])
		if err != nil {
			return nil, err
		}
		lines = append(lines, fmt.Sprintf("  %q: %s", name, value))
	}
	return []byte("{\n" + strings.Join(lines, ",\n") + "\n}\n"), nil
}
