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

// thing describes an interface on which users depend, such as a flag or a metric.
type thing struct {
	// Type is the type of a flag or JSON field, or the type and the labels of a metric.
	Type string `json:"type,omitempty"`
	// Default is the default value of a flag or chart value, the full name of an alias or short
	// flag, or the number of an exit code.
	Default string `json:"default,omitempty"`
	// Min and Max are the bounds of a flag's value.
	Min string `json:"min,omitempty"`
	Max string `json:"max,omitempty"`
}

// surface maps names, such as "flag tidekeeper --namespaces", to the interfaces on which users
// depend. It does not contain the CRDs, which are compared separately.
type surface map[string]thing

// compareSurfaces returns the interfaces that were removed or have changed incompatibly. An
// addition is never a breaking change.
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

// atMost reports whether the bound a is less than or equal to the bound b. A bound is a duration or
// a number.
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

// encode returns JSON with one interface per line, so that changes of a recorded surface are easy
// to read.
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
