// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package view

import (
	"testing"

	"tidekeeper.dev/tidekeeper/internal/capacity"
)

func TestDevicesText(t *testing.T) {
	gpus := capacity.DeviceCount{Class: "gpu.example.com", Devices: 8, Free: 3}
	some := capacity.DeviceCount{Class: "nic.example.com", Devices: 1, Free: 1, NotEvaluated: 2}
	for want, d := range map[string]PoolDetail{
		"": {},
		"not available: you may not list resourceslices.resource.k8s.io": {NoDevices: "you may not list resourceslices.resource.k8s.io"},
		"gpu.example.com: 3 of 8 free":                                   {Devices: &capacity.DeviceCounts{Classes: []capacity.DeviceCount{gpus}}},
		"gpu.example.com: 3 of 8 free; nic.example.com: 1 of 1 free, 2 partitionable or consumable ones are not evaluated": {
			Devices: &capacity.DeviceCounts{Classes: []capacity.DeviceCount{gpus, some}},
		},
		"gpu.example.com: at most 3 of 8 free (because of: devices (no right to list resourceclaims))": {
			Devices: &capacity.DeviceCounts{Classes: []capacity.DeviceCount{gpus}, AtMost: []string{"devices (no right to list resourceclaims)"}},
		},
	} {
		if got := d.DevicesText(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
