// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package cli is the kubectl plugin, kubectl tide.
//
// What is shown is worked out by plain functions of objects and a time (tables,
// the calendar of ticks, a schedule in words, bars); the commands only fetch
// and print.
package cli
