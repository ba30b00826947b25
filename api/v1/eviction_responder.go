// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

// EvictionResponder is the name of the manager in spec.evictionResponders of a pod, and in the
// status of Evictions of the API group lifecycle.k8s.io.
const EvictionResponder = "tidekeeper.dev/restart"

// EvictionResponderLabel on a ScheduledRestart means that the manager created it to move the targets of
// Evictions. The value is "true". The manager deletes these ScheduledRestarts.
const EvictionResponderLabel = "tidekeeper.dev/eviction-responder"
