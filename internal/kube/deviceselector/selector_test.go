// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package deviceselector

import (
	"testing"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

func TestCompile(t *testing.T) {
	device := &resourcev1.Device{
		Name:       "gpu-0",
		Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{"model": {StringValue: new("large")}, "driverVersion": {VersionValue: new("2.1.0")}},
		Capacity:   map[resourcev1.QualifiedName]resourcev1.DeviceCapacity{"memory": {Value: resource.MustParse("40Gi")}},
	}
	for expression, want := range map[string]string{
		`device.driver == "gpu.example.com"`:                                                               "matches",
		`device.driver == "nic.example.com"`:                                                               "does not match",
		`device.attributes["gpu.example.com"].model == "large"`:                                            "matches",
		`device.attributes["gpu.example.com"].model == "small"`:                                            "does not match",
		`device.attributes["gpu.example.com"].driverVersion.isGreaterThan(semver("2.0.0"))`:                "matches",
		`device.capacity["gpu.example.com"].memory.compareTo(quantity("80Gi")) >= 0`:                       "does not match",
		`device.attributes["gpu.example.com"].color == "red"`:                                              "fails",
		`"color" in device.attributes["gpu.example.com"] && device.attributes["gpu.example.com"].color==1`: "does not match",
		`device.allowMultipleAllocations`:                                                                  "does not match",
		`device.driver ==`:                                                                                 "does not compile",
		`device.future == 1`:                                                                               "does not compile",
		`device.driver`:                                                                                    "does not compile",
	} {
		if got := resultOf(expression, device); got != want {
			t.Errorf("%s %s, want: %s", expression, got, want)
		}
	}
}

func resultOf(expression string, device *resourcev1.Device) string {
	matches, err := Compile(expression)
	if err != nil {
		return "does not compile"
	}
	switch matched, err := matches("gpu.example.com", device); {
	case err != nil:
		return "fails"
	case matched:
		return "matches"
	}
	return "does not match"
}
