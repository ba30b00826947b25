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

// FlagError says in one line which value of a flag cannot be read, and what the flag accepts. Other
// errors of a command line stay as they are.
func FlagError(err error) error {
	var invalid *pflag.InvalidValueError
	if !errors.As(err, &invalid) {
		return err
	}
	flag, cause := invalid.GetFlag(), errors.Unwrap(invalid)
	return fmt.Errorf("--%s=%q: %s", flag.Name, invalid.GetValue(), accepted(flag, cause))
}

// accepted says what a flag accepts: in words of our own where the cause is in those of the parsers of
// Go, which name their functions.
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
