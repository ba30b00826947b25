// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package soundness

import "slices"

// Pairs returns all pairs of operators, one with a bug and one without.
func Pairs() []Pair { return slices.Concat(writes, caches, belongings, kinds, edits) }

// Steps of the workloads on which explore tests the operators, in YAML.
const (
	// made is a step that creates a Thing named "a".
	made = `
- name: a thing is made
  apply: |
    apiVersion: example.com/v1
    kind: Thing
    metadata: {name: a, namespace: default}
    spec: {message: one, count: 1}
`
	// edited is a step that changes the message of the Thing "a"; deleted lists steps that delete
	// the Thing and wait until it no longer exists.
	edited = `
- name: it is edited
  patch: {resource: things.example.com, namespace: default, name: a, merge: {spec: {message: two}}}
`
	deleted = `
- name: it is deleted
  delete: {resource: things.example.com, namespace: default, name: a}
- wait: {resource: things.example.com, namespace: default, name: a, for: deleted, timeout: 2m}
`
	// gone is a step that deletes the Thing "a", which has no finalizer, without waiting.
	gone = `
- name: it is deleted
  delete: {resource: things.example.com, namespace: default, name: a}
`
)

// listed makes client-go use list requests instead of streaming lists, because only list requests
// can return stale objects.
var listed = []string{"KUBE_FEATURE_WatchListClient=false"}
