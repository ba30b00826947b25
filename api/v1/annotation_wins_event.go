// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

// EventAnnotationWins is recorded about a ScheduledRestart of an opt-in when another client
// changed a field that an annotation of the workload sets, and the manager restored the
// annotation's value.
const EventAnnotationWins = "AnnotationWins"
