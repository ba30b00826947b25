// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package baseline learns from undisturbed runs how the operator behaves.
//
//	baseline.go   the baseline, of two runs
//	differ.go     fields in which undisturbed runs differ
//	counts.go     how often objects are created and deleted
//	interest.go   how promising a resource is for faults
//	census.go     counts of judged objects and fields
package baseline
