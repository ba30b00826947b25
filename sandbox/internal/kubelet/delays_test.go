// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"testing"
	"time"

	"github.com/spf13/pflag"
)

func TestArgsSetTheSameDelays(t *testing.T) {
	want := Delays{1, 2 * time.Millisecond, 3 * time.Second, 4 * time.Minute, 5, 6, 7, 8}
	var got Delays
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	got.AddFlags(flags)
	if err := flags.Parse(want.Args()); err != nil {
		t.Fatal(err)
	}
	if got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestNegativeDelayIsRefused(t *testing.T) {
	d := DefaultDelays()
	if err := d.Validate(); err != nil {
		t.Errorf("defaults: %v", err)
	}
	d.Crash = -1
	if err := d.Validate(); err == nil {
		t.Error("a negative delay was accepted")
	}
}

func TestAnnotationsOfOnePodLeaveTheDefaultsAlone(t *testing.T) {
	defaults := DefaultDelays()
	p, err := planOf(podOf("ready-after", "1m30s"), defaults)
	if err != nil {
		t.Fatal(err)
	}
	if p.delays.Ready != 90*time.Second || defaults != DefaultDelays() {
		t.Errorf("the pod's: %+v, the defaults: %+v", p.delays, defaults)
	}
}
