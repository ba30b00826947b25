// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package wakeup adds requests to a controller's queue at given times of the wall clock.
//
// Waiting requests consume no CPU, regardless of their number. A delayed addition to the
// controller's own queue would be a timer, which stops while the machine is suspended and cannot be
// cancelled when it is no longer needed.
package wakeup
