// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/pflag"
)

// FlagError rewrites the error for an invalid flag value to a single line with the flag, its value
// and the accepted values. Other errors are returned unchanged.
func FlagError(err error) error {
	var invalid *pflag.InvalidValueError
	if !errors.As(err, &invalid) {
		return err
	}
	flag, cause := invalid.GetFlag(), errors.Unwrap(invalid)
	return fmt.Errorf("--%s=%q: %s", flag.Name, invalid.GetValue(), accepted(flag, cause))
}

// accepted describes the values that a flag accepts. It replaces the errors of Go's parsers, which
// contain function names, such as strconv.ParseInt, that mean nothing to a user.
func accepted(flag *pflag.Flag, cause error) string {
	var kind string
	var number *strconv.NumError
	switch {
	case errors.As(cause, &number):
		kind = map[string]string{"bool": "true or false", "float64": "a number"}[flag.Value.Type()]
		if kind == "" {
			kind = "a whole number"
		}
	case strings.HasPrefix(cause.Error(), "time: "):
		kind = "a duration with its unit, such as 30s or 5m"
	default:
		return cause.Error()
	}
	if limits := flag.Annotations[RangeAnnotation]; len(limits) == 2 {
		return "must be " + kind + ", from " + limits[0] + " to " + limits[1]
	}
	if errors.Is(cause, strconv.ErrRange) {
		return "is out of range: must be " + kind
	}
	return "must be " + kind
}
