// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

// EventAnnotationWins is recorded about a ScheduledRestart of an opt-in when a field that an
// annotation of the workload names was changed by another client, and was set back.
const EventAnnotationWins = "AnnotationWins"
