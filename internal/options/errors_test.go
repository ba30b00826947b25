// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"errors"
	"testing"
	"time"
)

// duration is a flag type whose parse error already describes the accepted values.
type duration struct{}

func (duration) String() string   { return "" }
func (duration) Type() string     { return "duration" }
func (duration) Set(string) error { return errors.New("write a duration such as 7d") }

// TestFlagError checks that the error for an invalid flag value contains the flag, the value and
// the accepted values, but no names of Go functions.
func TestFlagError(t *testing.T) {
	g := NewGroup("test")
	g.Int(new(int), "burst", 1, Between(1, 100), "")
	g.Float64(new(float64), "qps", 1, Between(0.5, 100), "")
	g.Duration(new(time.Duration), "period", time.Second, Between(time.Second, time.Hour), "")
	g.Bool(new(bool), "elect", false, "")
	g.Strings(new([]string), "names", nil, nil, "")
	g.Flags.IntP("v", "v", 0, "")
	g.Flags.Var(duration{}, "for", "")
	for arg, want := range map[string]string{
		"--burst=x":                    `--burst="x": must be a whole number, from 1 to 100`,
		"--burst=1.5":                  `--burst="1.5": must be a whole number, from 1 to 100`,
		"--burst=":                     `--burst="": must be a whole number, from 1 to 100`,
		"--burst=99999999999999999999": `--burst="99999999999999999999": must be a whole number, from 1 to 100`,
		"--burst=1\n2":                 `--burst="1\n2": must be a whole number, from 1 to 100`,
		"--qps=many":                   `--qps="many": must be a number, from 0.5 to 100`,
		"--period=5":                   `--period="5": must be a duration with its unit, such as 30s or 5m, from 1s to 1h0m0s`,
		"--elect=x":                    `--elect="x": must be true or false`,
		"-v=x":                         `--v="x": must be a whole number`,
		"-v=99999999999999999999":      `--v="99999999999999999999": is out of range: must be a whole number`,
		"--for=soon":                   `--for="soon": write a duration such as 7d`,
		"--names=a\"b":                 `--names="a\"b": parse error on line 1, column 2: bare " in non-quoted-field`,
		"--no-such":                    `unknown flag: --no-such`,
	} {
		if got := FlagError(g.Flags.Parse([]string{arg})); got == nil || got.Error() != want {
			t.Errorf("%s: got %v, want %s", arg, got, want)
		}
	}
}
