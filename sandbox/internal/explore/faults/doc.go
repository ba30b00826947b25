// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package faults is the table of the faults that explore and fuzz play.
//
//	table.go      an entry for each fault: effect, cause, rule, action, score, consequences
//	markdown.go   the table as a part of the documentation
package faults
