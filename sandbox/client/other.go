// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package client

// FreeAddress returns an error, because ports can be reserved only on Linux.
func FreeAddress() (address string, release func() error, err error) {
	return "", nil, onLinux()
}
