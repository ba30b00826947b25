// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package optionstest provides helpers for tests of option declarations.
package optionstest

import (
	"reflect"
	"testing"

	"github.com/spf13/pflag"

	"tidekeeper.dev/tidekeeper/internal/options"
)

// Cover checks that the groups have a flag, with a description and a valid default, for each
// exported field of the struct to which o points. It modifies all fields of the struct.
func Cover(t *testing.T, o any, groups ...*options.Group) {
	t.Helper()
	value := reflect.ValueOf(o).Elem()
	defaults := reflect.New(value.Type()).Elem()
	defaults.Set(value)

	flags := 0
	for _, g := range groups {
		if err := g.Validate(); err != nil {
			t.Errorf("a default is not allowed: %v", err)
		}
		g.Flags.VisitAll(func(f *pflag.Flag) {
			flags++
			if f.Usage == "" {
				t.Errorf("--%s has no description", f.Name)
			}
			if err := f.Value.Set(otherThanDefault(f)); err != nil {
				t.Errorf("--%s=%s: %v", f.Name, otherThanDefault(f), err)
			}
		})
	}
	fields := 0
	for field, got := range value.Fields() {
		if !field.IsExported() {
			continue
		}
		fields++
		if reflect.DeepEqual(got.Interface(), defaults.FieldByIndex(field.Index).Interface()) {
			t.Errorf("no flag sets %s.%s", value.Type(), field.Name)
		}
	}
	if flags != fields {
		t.Errorf("there are %d flags for %d options", flags, fields)
	}
}

func otherThanDefault(f *pflag.Flag) string {
	switch f.Value.Type() {
	case "bool":
		if f.DefValue == "true" {
			return "false"
		}
		return "true"
	case "int":
		return "7"
	case "float64":
		return "7.5"
	case "duration":
		return "7m"
	}
	return "something-else"
}
