// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"
)

// Each field of Options has one flag, and parsing nothing leaves the defaults
// as they are.
func TestFlagsCoverOptions(t *testing.T) {
	opts := DefaultOptions()
	flags := allFlags(&opts)
	if err := flags.Parse(nil); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(DefaultOptions(), opts); diff != "" {
		t.Errorf("after parsing nothing (-defaults +got):\n%s", diff)
	}

	// Every flag is set to something else than its default; then every field
	// must differ from its default.
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Usage == "" {
			t.Errorf("--%s has no description", f.Name)
		}
		value := map[string]string{"bool": "true", "int": "7", "float64": "7.5", "duration": "7m"}[f.Value.Type()]
		switch {
		case f.Value.Type() == "bool" && f.DefValue == "true":
			value = "false"
		case value == "":
			value = "something-else"
		}
		if err := f.Value.Set(value); err != nil {
			t.Errorf("--%s=%s: %v", f.Name, value, err)
		}
	})
	got, defaults := reflect.ValueOf(opts), reflect.ValueOf(DefaultOptions())
	fields := 0
	for field, value := range got.Fields() {
		fields++
		if reflect.DeepEqual(value.Interface(), defaults.FieldByIndex(field.Index).Interface()) {
			t.Errorf("no flag sets Options.%s", field.Name)
		}
	}
	flagCount := 0
	flags.VisitAll(func(*pflag.Flag) { flagCount++ })
	if flagCount != fields {
		t.Errorf("there are %d flags for %d options", flagCount, fields)
	}
}

func TestFlagsParse(t *testing.T) {
	opts := DefaultOptions()
	if err := allFlags(&opts).Parse([]string{"--controllers=*,-nodepool", "--status-interval=2s", "--leader-elect"}); err != nil {
		t.Fatal(err)
	}
	want := DefaultOptions()
	want.Controllers = []string{"*", "-nodepool"}
	want.StatusInterval = 2e9
	want.LeaderElect = true
	if diff := cmp.Diff(want, opts); diff != "" {
		t.Errorf("options (-want +got):\n%s", diff)
	}
}

func allFlags(o *Options) *pflag.FlagSet {
	all := pflag.NewFlagSet("all", pflag.ContinueOnError)
	sets := o.Flags()
	for _, name := range sets.Order {
		all.AddFlagSet(sets.FlagSets[name])
	}
	return all
}
