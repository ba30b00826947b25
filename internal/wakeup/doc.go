// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package wakeup queues the requests of a controller at times of the wall clock.
//
// Any number of requests costs nothing while they wait. A delay in the controller's own
// queue would be a timer, which stands still while a machine is suspended, and which
// could not be taken back when the reason to wake up is gone.
package wakeup
