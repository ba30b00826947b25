// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

// GetAPIVersion returns the apiVersion of the workload; [DefaultTargetAPIVersion] if it is not
// set.
func (r TargetRef) GetAPIVersion() string {
	if r.APIVersion == "" {
		return DefaultTargetAPIVersion
	}
	return r.APIVersion
}

// Equal reports whether both name the same workload.
func (r TargetRef) Equal(other TargetRef) bool {
	return r.GetAPIVersion() == other.GetAPIVersion() && r.Kind == other.Kind && r.Name == other.Name
}
