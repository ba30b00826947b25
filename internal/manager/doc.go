// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package manager puts the Tidekeeper manager together: the scheme, the one
// shared cache and what it keeps of each object, the client, probes, metrics,
// leader election, and the controllers that were chosen.
//
// [Run] is the whole way from [Options] to a manager that has stopped:
//
//	Options.Validate → LoadConfig → Preflight → New → Start
//
// Each step can be called by itself, which is what the tests do.
//
// A new controller is one entry in the table in controllers.go.
package manager
