// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"k8s.io/apimachinery/pkg/watch"

	"tidekeeper.dev/tidekeeper/sandbox/internal/state"
)

// Whole stands for all fields of a created or deleted object.
const Whole = "*"

// Edits returns the changed paths outside of metadata and status. It returns Whole if the object is
// created or deleted, or if its deletion begins.
func (v *Version) Edits() []string {
	if v.Old == nil || v.Type != watch.Modified || (v.Old.GetDeletionTimestamp() == nil) != (v.Object.GetDeletionTimestamp() == nil) {
		return []string{Whole}
	}
	skip := func(path string) bool { return path == "metadata" || path == "status" }
	return state.Flatten(v.Old.Object, skip).Differ(state.Flatten(v.Object.Object, skip))
}
