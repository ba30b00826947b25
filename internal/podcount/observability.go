// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package podcount

// Label is the label of a ReplicaSet that says how many pods it has.
const Label = "pod-count"
