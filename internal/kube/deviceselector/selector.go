// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package deviceselector evaluates the CEL selectors of DeviceClasses and ResourceClaims with the
// library that the scheduler uses. It is a package of its own, so that package capacity, which the
// manager uses too, does not depend on CEL.
package deviceselector

import (
	"context"
	"errors"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/cel"
)

// Compile compiles a selector. The returned function reports whether a device of a driver matches
// it. An error of this function means that the scheduler never allocates the device for the
// selector; an error of Compile, that the selector may be one of a newer Kubernetes.
func Compile(expression string) (matches func(driver string, device *resourcev1.Device) (bool, error), err error) {
	// Selectors of stored objects may use everything that the library knows, as in the scheduler.
	compiled := cel.GetCompiler(cel.Features{EnableConsumableCapacity: true}).CompileCELExpression(expression, cel.Options{DisableCostEstimation: true})
	if compiled.Error != nil {
		return nil, errors.New(compiled.Error.Detail)
	}
	return func(driver string, device *resourcev1.Device) (bool, error) {
		// The library limits the cost of an evaluation, so that it needs no deadline.
		matched, _, err := compiled.DeviceMatches(context.Background(), cel.Device{
			Driver: driver, Attributes: device.Attributes, Capacity: device.Capacity, AllowMultipleAllocations: device.AllowMultipleAllocations,
		})
		return matched, err
	}, nil
}
