// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"

	"tidekeeper.dev/tidekeeper/internal/options/optionstest"
)

// TestFlagsCoverOptions checks that each field of Options has a flag. The controllers' flags are
// tested in the controllers' packages.
func TestFlagsCoverOptions(t *testing.T) {
	o := NewOptions()
	own := slices.Clone(o.groups)
	for _, c := range o.controllers {
		if i := slices.Index(own, c.Options); i >= 0 {
			own = slices.Delete(own, i, i+1)
		}
	}
	optionstest.Cover(t, o, own...)
}

func TestFlagsParse(t *testing.T) {
	opts := NewOptions()
	flags := allFlags(opts)
	if err := flags.Parse([]string{"--controllers=*,-nodepool", "--status-interval=2s", "--leader-elect"}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"*", "-nodepool"}, opts.Controllers); diff != "" {
		t.Errorf("controllers (-want +got):\n%s", diff)
	}
	if interval, err := flags.GetDuration("status-interval"); interval != 2*time.Second || err != nil {
		t.Errorf("the status interval is %s, %v", interval, err)
	}
	if !opts.LeaderElect {
		t.Error("no leader is elected")
	}
	changed := 0
	flags.Visit(func(*pflag.Flag) { changed++ })
	if changed != 3 {
		t.Errorf("%d flags have changed, want 3", changed)
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
