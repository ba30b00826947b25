// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package wakeup queues the requests of a controller at times of the wall clock.
//
// Waiting requests cost nothing, whatever their number. A delay in the controller's own queue
// would be a timer, which stands still while a machine is suspended, and which could not be
// cancelled when the reason to wake up is gone.
package wakeup
