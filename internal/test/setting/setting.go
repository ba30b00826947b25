// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package setting reads environment variables that set the size of a test, such as CASES.
package setting

import (
	"os"
	"strconv"
	"testing"
)

// Number returns the number in an environment variable, or `otherwise` if the variable is not set.
// The test fails if the value is not a number or is less than `least`, because a test without cases
// would pass without checking anything.
func Number(t testing.TB, variable string, otherwise, least int) int {
	t.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < least {
		t.Fatalf("%s=%s: want a number, at least %d", variable, text, least)
	}
	return n
}
