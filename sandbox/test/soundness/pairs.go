// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package soundness

import "slices"

// Pairs are all of them.
func Pairs() []Pair { return slices.Concat(writes, caches, belongings, kinds, edits) }

// Steps of workloads.
const (
	// made makes the Thing a.
	made = `
- name: a thing is made
  apply: |
    apiVersion: example.com/v1
    kind: Thing
    metadata: {name: a, namespace: default}
    spec: {message: one, count: 1}
`
	// edited changes what it wants, and deleted deletes it and waits until it is gone.
	edited = `
- name: it is edited
  patch: {resource: things.example.com, namespace: default, name: a, merge: {spec: {message: two}}}
`
	deleted = `
- name: it is deleted
  delete: {resource: things.example.com, namespace: default, name: a}
- wait: {resource: things.example.com, namespace: default, name: a, for: deleted, timeout: 2m}
`
	// gone deletes it, and has nothing to wait for.
	gone = `
- name: it is deleted
  delete: {resource: things.example.com, namespace: default, name: a}
`
)

// listed has client-go list what it watches, and not stream it: such a list may be stale.
var listed = []string{"KUBE_FEATURE_WatchListClient=false"}
