// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build race

package decision

// raceDetector is true if the tests run with the race detector.
const raceDetector = true
