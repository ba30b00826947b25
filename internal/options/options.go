// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/pflag"
)

// RangeAnnotation is the flag annotation that holds a flag's minimum and maximum value.
const RangeAnnotation = "range"

// Group is a group of options under a common heading in --help and docs/reference.
type Group struct {
	// Name is the heading in --help and docs/reference.
	Name string
	// Flags holds one flag for each option.
	Flags *pflag.FlagSet

	checks    []func() error
	relations []func() error
}

// NewGroup returns a group with the given heading and no options.
func NewGroup(name string) *Group {
	return &Group{Name: name, Flags: pflag.NewFlagSet(name, pflag.ContinueOnError)}
}

// Range is a range of allowed option values, including both ends.
type Range[T cmp.Ordered] struct{ Min, Max T }

// Between returns the range from least to greatest, including both ends.
func Between[T cmp.Ordered](least, greatest T) Range[T] { return Range[T]{least, greatest} }

// Check returns an error if the value is out of range. The error names the flag, the value and the
// range.
func (r Range[T]) Check(flag string, value T) error {
	if value >= r.Min && value <= r.Max {
		return nil
	}
	return fmt.Errorf("--%s=%v: must be from %v to %v", flag, value, r.Min, r.Max)
}

// Int adds an option that sets *p to an integer. value is the default.
func (g *Group) Int(p *int, flag string, value int, allowed Range[int], usage string) {
	g.Flags.IntVar(p, flag, value, usage)
	addRange(g, p, flag, allowed)
}

// Float64 adds an option that sets *p to a floating-point number. value is the default.
func (g *Group) Float64(p *float64, flag string, value float64, allowed Range[float64], usage string) {
	g.Flags.Float64Var(p, flag, value, usage)
	addRange(g, p, flag, allowed)
}

// Duration adds an option that sets *p to a duration. value is the default.
func (g *Group) Duration(p *time.Duration, flag string, value time.Duration, allowed Range[time.Duration], usage string) {
	g.Flags.DurationVar(p, flag, value, usage)
	addRange(g, p, flag, allowed)
}

// Bool adds an option that sets *p to true or false. value is the default.
func (g *Group) Bool(p *bool, flag string, value bool, usage string) {
	g.Flags.BoolVar(p, flag, value, usage)
}

// String adds an option that sets *p to a string. value is the default. The given check, which may
// be nil, returns an error that explains why a value is invalid.
func (g *Group) String(p *string, flag, value string, check func(string) error, usage string) {
	g.Flags.StringVar(p, flag, value, usage)
	if check == nil {
		return
	}
	g.Check(func() error {
		if err := check(*p); err != nil {
			return fmt.Errorf("--%s=%q: %w", flag, *p, err)
		}
		return nil
	})
}

// Strings adds an option that sets *p to a list of strings. value is the default. The given check,
// which may be nil, returns an error that explains why a list is invalid.
func (g *Group) Strings(p *[]string, flag string, value []string, check func([]string) error, usage string) {
	g.Flags.StringSliceVar(p, flag, value, usage)
	if check == nil {
		return
	}
	g.Check(func() error {
		if err := check(*p); err != nil {
			return fmt.Errorf("--%s=%s: %w", flag, strings.Join(*p, ","), err)
		}
		return nil
	})
}

// Check adds a check of a single option. The check's error must name the flag.
func (g *Group) Check(check func() error) { g.checks = append(g.checks, check) }

// CheckRelation adds a check of the relation between several options. The check runs only if each
// option has an allowed value.
func (g *Group) CheckRelation(check func() error) { g.relations = append(g.relations, check) }

// Validate returns nil if every option has an allowed value. Its error has a line for each invalid
// option, with the flag, its value and the allowed values.
func (g *Group) Validate() error {
	if err := join(g.checks); err != nil {
		return err
	}
	return join(g.relations)
}

func join(checks []func() error) error {
	errs := make([]error, len(checks))
	for i, check := range checks {
		errs[i] = check()
	}
	return errors.Join(errs...)
}

func addRange[T cmp.Ordered](g *Group, p *T, flag string, allowed Range[T]) {
	g.Check(func() error { return allowed.Check(flag, *p) })
	SetRange(g.Flags, flag, allowed)
}

// SetRange annotates a flag with its range of allowed values, for error messages.
func SetRange[T cmp.Ordered](flags *pflag.FlagSet, flag string, allowed Range[T]) {
	// SetAnnotation fails only for an unknown flag.
	_ = flags.SetAnnotation(flag, RangeAnnotation, []string{fmt.Sprint(allowed.Min), fmt.Sprint(allowed.Max)})
}
