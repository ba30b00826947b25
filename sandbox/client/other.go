// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package client

// FreeAddress returns an error, as ports can be reserved on Linux only.
func FreeAddress() (address string, release func() error, err error) {
	return "", nil, onLinux()
}
